"""The parts of the scripted model: what it reads, the rules it reasons by, how it embeds, misbehaves and serves.

It knows nothing but the requests it gets: no Kubernetes, no incident object, no setting of the operator.
"""
