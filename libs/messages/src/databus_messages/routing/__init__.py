"""Routing rules (`publisher.routes`): which rows and columns an output publishes."""
