"""Which step between versions broke a probe on a card: asked of as few versions as it takes."""
