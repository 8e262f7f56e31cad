"""What gradients say of each layer and of the network: statistics, trends, tests, forecasts."""
