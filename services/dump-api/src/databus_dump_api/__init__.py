"""Takes versioned snapshots and serves them over HTTP under leases."""
