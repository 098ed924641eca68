"""Writes the outcomes of tests to the file OUTCOMES: a line for each that did not pass, and the number of all."""
import os, re
from django.test.runner import DiscoverRunner


def outcome(trace):
    """The class of the error, whose text may have ids."""
    return re.findall(r"^([A-Za-z_][\w.]*)(?::|$)", trace, re.MULTILINE)[-1]


class Runner(DiscoverRunner):
    def run_suite(self, suite, **kwargs):
        result = super().run_suite(suite, **kwargs)
        lines = [f"all tests: {result.testsRun}"]
        for test, trace in result.failures + result.errors:
            lines.append(f"{getattr(test, 'test_case', test).id()} {outcome(trace)}")
        lines += [f"{test.id()} skipped" for test, _ in result.skipped]
        lines += [f"{test.id()} unexpected success" for test in result.unexpectedSuccesses]
        with open(os.environ["OUTCOMES"], "w") as file:
            file.write("\n".join(sorted(set(lines))) + "\n")
        return result
