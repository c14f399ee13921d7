"""What the tasks call, one module for each kind: each joins the rooms of this package and talks to the person."""
