"""An app of a host with functions that Django has made tasks of."""
