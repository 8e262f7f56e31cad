"""Right and wrong conversions of small models: does `--verify-conversion` tell them apart?"""
