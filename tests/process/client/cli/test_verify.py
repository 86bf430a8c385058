"""`scoregate verify` on the service around the demo models."""


def test_the_demo_models_have_their_shipped_scores(demo_service, run, monkeypatch):
    """Six values and three orders of two metrics; `python -m demo.record_golden` after a training."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", demo_service.url)
    done = run("verify")

    assert (0, 18, 0) == (done.returncode, done.stdout.count("✓"), done.stdout.count("✗")), done.stdout
