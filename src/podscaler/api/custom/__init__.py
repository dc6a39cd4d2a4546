"""Custom resources as pure functions: from a CustomResourceDefinition to the record by which its objects are served."""
