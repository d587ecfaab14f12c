"""What statements of the binlog do to tables."""
