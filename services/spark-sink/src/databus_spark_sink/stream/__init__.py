"""Which records of Kafka are the next micro-batch."""
