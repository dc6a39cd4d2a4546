"""`podscaler migrate`: a HorizontalPodAutoscaler becomes a PodAutoscaler, or the other way round.

Reading order: `migration` has the steps; `counterpart` makes the other object.
May import: `controller.informers` and below.
"""
