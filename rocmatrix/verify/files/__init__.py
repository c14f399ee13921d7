"""Every file of an image by its bytes: against locked wheels, the checkout's trainer, the base and package lists."""
