"""What diagnoses detect with, one folder for each family; plug-ins are in `diagnoses`."""
