"""What every part uses and none owns: arguments, files, numerics, the console."""
