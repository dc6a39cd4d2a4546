"""Every operation of the API, with requests that are right, nearly right and wrong in any of their parts."""

import random

import fuzz_budget as budget
import fuzz_operations as operations
import pytest
from fuzz_operations import Operation
from fuzz_server import Target
from fuzz_verdict import check
from hypothesis import given

OPERATIONS = operations.all_operations()


@pytest.mark.parametrize("operation", OPERATIONS, ids=[operation.label for operation in OPERATIONS])
def test_operation(target: Target, operation: Operation) -> None:
    """Whatever is asked, the answer is a success or a Status, and the log stays empty."""
    target.ensure()

    @budget.part(operation.price)
    @given(budget.SEEDS)
    def ask(seed: int) -> None:
        request = operations.request(random.Random(f"{operation.label} {seed}"), operation)
        check(target.client.send(request), request, target.alarm)

    ask()
