"""What everything stands on: errors, options, registries, arrays, files, threads."""
