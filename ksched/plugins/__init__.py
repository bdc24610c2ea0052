"""The in-tree plugins, one file each, named as registered. `registry` lists them; plugins do not know one another."""
