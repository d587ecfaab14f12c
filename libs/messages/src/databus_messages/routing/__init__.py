"""Routing rules (`publisher.routes`): which rows and columns are published, and to which topics and partitions."""
