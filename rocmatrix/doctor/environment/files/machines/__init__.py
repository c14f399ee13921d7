"""Files that set up whole machines: tasks of Ansible, modules of NixOS, guests of Proxmox VE, scripts of Windows."""
