"""The API objects by kind: every read and write of HTTP, controllers and node goes through here.

Reading order: `registry` is the protocol; `objects` and `writing` carry out; `field_managers` tracks managedFields.
May import: `controlplane.storage` and below.
"""
