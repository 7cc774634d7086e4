"""What the Snakefile is made of: the checked plan, import closures, the notebook runner, the verdict."""
