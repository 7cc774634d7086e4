"""The claims: `engine` turns measured cells into verdicts, `paper` states those of the paper, one function each."""
