"""Names the packages to install: every top-level room and all its sub-folders, under the one import name."""

from setuptools import find_namespace_packages, setup

ROOMS = ("cli", "engine", "integrations", "kernels", "rules", "spec", "verification")

# Namespace packages, because a folder that holds only YAML must be installed too.
FOLDERS = find_namespace_packages(
    include=[pattern for room in ROOMS for pattern in (room, f"{room}.*")],
    exclude=["*.__pycache__"],
)

setup(packages=[f"hitproof.{folder}" for folder in FOLDERS])
