"""The flow of gradients through the layers over the steps: recorded, summed up, made a picture."""
