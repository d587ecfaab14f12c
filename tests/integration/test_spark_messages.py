"""Messages become entries of the change log."""

from pyspark.sql import DataFrame, SparkSession

from common.spark import leaves_sockets
from databus_core import names
from databus_spark.messages import decode_records
from databus_spark.mirror_state import DumpBase
from databus_wire.kafka_records import sequence_text
from integration.sink import KEY

pytestmark = leaves_sockets


WRONG = {
    "no JSON": "?",
    "no base64": '{"Table":T,"Action":"insert","Rows":[["?","b"]]}',
    "a row without its last cell": '{"Table":T,"Action":"insert","Rows":[["MQ=="]]}',
    "an update without its after image": '{"Table":T,"Action":"update","Rows":[["MQ==",null]]}',
    "no rows": '{"Table":T,"Action":"insert","Query":"MQ=="}',
    "no table": '{"Action":"insert","Rows":[["MQ==",null]]}',
    "an unknown action": '{"Table":T,"Action":"upsert","Rows":[["MQ==",null]]}',
}
COLUMNS = '{"Schema":"shop","Name":"t","Columns":[{"Name":"a","RawType":"int"},{"Name":"b","RawType":"blob"}]}'


def test_a_message_that_is_not_in_the_format_is_kept_and_marked_invalid(spark: SparkSession) -> None:
    right = '{"Table":T,"Action":"insert","Rows":[["MQ==",null]]}'
    records = [(KEY, value) for value in (right, *WRONG.values())] + [("{}", right)]
    entries = decode_records(_records(spark, records), 0, 9)

    found = entries.select("_offset", "_action").collect()

    assert sorted(map(tuple, found)) == [(0, "insert"), *((offset, "invalid") for offset in range(1, len(records)))]


# T19: binlog file names get longer after .999999, and offsets need more than 32 bits
def test_t19_records_are_compared_with_the_dump_by_file_number_and_64_bit_offset(spark: SparkSession) -> None:
    positions = {
        ("log.999999", 5 << 32): False,
        ("log.1000000", 4): False,
        ("log.1000000", (5 << 32) - 1): False,
        ("log.1000000", (5 << 32) + 1): True,
        ("other.1000000", 4): False,
        ("other.1000001", 4): True,
    }
    value = '{"Table":T,"Action":"insert","Rows":[["MQ==",null]]}'
    records = [(f'{{"Pos":{{"Name":"{file}","Pos":{offset}}},"Action":"DML"}}', value) for file, offset in positions]
    base = DumpBase("dump-1", "log.1000000", 5 << 32, until=0, passed={"t": {0: len(records)}})
    newer = decode_records(_records(spark, records), 0, 9).where(base.newer_entries)
    assert {(file, offset) for file, offset in newer.select("_file", "_position").collect()} == {
        position for position, kept in positions.items() if kept
    }


def _records(spark: SparkSession, messages: list[tuple[str, str]]) -> DataFrame:
    rows = ", ".join(
        f"('{key}', '{value.replace(':T', f':{COLUMNS}')}', {offset}L)" for offset, (key, value) in enumerate(messages)
    )
    header = f"array(struct('{names.SEQUENCE_HEADER}' as key, binary('{sequence_text(1, 0).decode()}') as value))"
    return spark.sql(
        f"SELECT binary(key) key, binary(value) value, offset, 't' topic, 0 partition, now() timestamp, "
        f"{header} headers FROM VALUES {rows} AS v(key, value, offset)"
    )
