"""All subgroups that a few conditions describe: their members, and evidence about counts in them."""
