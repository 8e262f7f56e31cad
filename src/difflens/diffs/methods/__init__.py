"""What analyses compute with, one folder for each family; plug-ins are in `analyses`."""
