"""What a student reads when a check fails."""

import pytest

from course_utils.testing import Mismatch, expect


def told(got: object, want: object, **more: object) -> str:
    """The message that comes of expecting ``want`` and getting ``got``, which must not agree."""
    with pytest.raises(Mismatch) as caught:
        expect(got, want, **more)
    return str(caught.value)
