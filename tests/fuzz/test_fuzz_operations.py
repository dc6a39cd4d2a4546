"""Every operation of the API, with requests that are right, nearly right and wrong in any of their parts.

`make test` asks one in four of them, `make test-all` the others.
"""

import random

import fuzz_budget as budget
import fuzz_operations as operations
import pytest
from fuzz_operations import Operation
from fuzz_server import Target
from fuzz_verdict import check
from hypothesis import given

import sampling

OPERATIONS = [pytest.param(operation, id=operation.label) for operation in operations.all_operations()]


@pytest.mark.parametrize("operation", sampling.one_in(4, OPERATIONS))
def test_operation(target: Target, operation: Operation) -> None:
    """Whatever is asked, the answer is a success or a Status, and the log stays empty."""
    target.ensure()

    @budget.part(operation.price)
    @given(budget.SEEDS)
    def ask(seed: int) -> None:
        request = operations.request(random.Random(f"{operation.label} {seed}"), operation)
        check(target.client.send(request), request, target.alarm)

    ask()
