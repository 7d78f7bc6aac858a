"""Use cases: messages, their handlers, the mediator and the ports they need."""
