"""Learning tasks: the interface, the choice by configuration, and one each for bars, tables and language models."""
