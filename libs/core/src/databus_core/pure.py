"""Whether the compiled paths of usual transactions are switched off: the Python beside them is their specification."""

import os

#: DATABUS_PURE=1 in the environment: each event is a Python object on its way
PURE = os.environ.get("DATABUS_PURE", "") not in {"", "0"}
