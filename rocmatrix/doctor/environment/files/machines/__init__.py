"""Files that set up whole machines: tasks of Ansible and modules of NixOS."""
