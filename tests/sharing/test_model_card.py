"""Model cards: metadata that a YAML parser reads back, and Markdown in which names are inert."""

from __future__ import annotations

import markdown
import pytest
import yaml

import evenhand as eh

from .conftest import HOSTILE


def _parts(card):
    head, front, body = card.split("---\n", 2)
    assert head == ""
    return yaml.safe_load(front), body


def test_the_metadata_are_those_of_a_card(run):
    metadata, _ = _parts(run.to_model_card(name="Loans", license="mit", tags=["credit"], dataset="loans-2024"))
    assert metadata["license"] == "mit"
    assert metadata["tags"] == ["credit", "fairness", "evenhand"]
    (model,) = metadata["model-index"]
    (result,) = model["results"]
    assert model["name"] == "Loans"
    assert result["task"]["type"] == "tabular-classification"
    assert result["dataset"] == {"type": "tabular", "name": "loans-2024"}
    first = result["metrics"][0]
    finding = run["fnr"][0]
    assert first["type"] == "fnr"
    assert first["value"] == pytest.approx(finding.estimate, rel=1e-5)
    assert first["args"]["verdict"] == "disparity"
    assert first["args"]["low"] == finding.interval.low


def test_the_card_says_what_was_found_and_what_was_not_tested(run, tmp_path):
    path = tmp_path / "README.md"
    card = run.to_model_card(path, name="Loans")
    assert path.read_text(encoding="utf-8") == card
    _, body = _parts(card)
    fact = next(e.fact for r in run.results for f, e in zip(r.findings, r.evidence, strict=True) if f.measure == "fnr")
    assert fact.replace("_", "\\_") in body
    assert "3,000 rows, of which 3,000 were used" in body
    for audit in ("projection", "individual", "proxy", "tail", "scan"):
        assert f"- The {audit} audit was not run: " in body
    assert "selection_rate" in body[body.index("these metrics were not compared") :].splitlines()[0]
    assert "share decided 0 among outcome 1" in body
    for sizes in run.data["groups"].values():
        assert all(f"| {label} | {n:,} |" in body for label, n in sizes.items())


def test_hostile_names_are_inert_in_both_parts(hostile_run):
    card = hostile_run.to_model_card(
        name=HOSTILE[1], dataset=HOSTILE[2], license=HOSTILE[6], **{HOSTILE[0]: HOSTILE[5]}
    )
    metadata, body = _parts(card)
    assert set(metadata) == {"license", HOSTILE[0], "tags", "model-index"}
    named = {metric["name"] for metric in metadata["model-index"][0]["results"][0]["metrics"]}
    assert any(HOSTILE[8] in name for name in named)
    assert any(HOSTILE[4] in name for name in named), "as a text"
    assert not [line for line in body.splitlines() if line.strip().startswith(("::", "license:"))]
    page = markdown.markdown(body, extensions=["tables"])
    assert "<img" not in page
    assert 'href="javascript' not in page
    rows = [line for line in body.splitlines() if line.startswith("| group |")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {8}


def test_values_that_do_not_exist_are_left_out_of_the_metadata():
    data = eh.AuditData.from_arrays(outcome=[0, 0, 1, 1], decision=[0, 1, 0, 1], groups={"g": ["a", "a", "b", "b"]})
    run = eh.audit(data, plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    metadata, body = _parts(run.to_model_card())
    assert metadata["model-index"][0]["results"][0]["metrics"] == []
    assert "**Not computable: 1 of 1 findings.**" in body


def test_the_index_is_written_by_the_card_alone(run):
    with pytest.raises(eh.UsageError, match="`model-index` holds the findings"):
        run.to_model_card(**{"model-index": []})
