"""What every service needs: events, progress, the pipe, settings, names, errors, metrics, runtime and clients."""
