"""SSH signatures on people's decisions: made and verified by OpenSSH's own `ssh-keygen`, against a list of signers."""
