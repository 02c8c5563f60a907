"""The network layer by layer is the network as transformers runs it."""

from __future__ import annotations

import json

import pytest

from online.ranking import RankingError
from online.ranking.network import network_of, revision_of, tokenizer_of
from online.ranking.prompt_tokens import PromptTokens
from tests.online.ranking.tiny import prompts, write_encoder

torch = pytest.importorskip("torch")
from online.ranking.batches import by_length, padded, score_all  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def network(encoder):
    network = network_of(encoder)
    network.module.eval()
    return network


@pytest.fixture(scope="module")
def batch(encoder):
    tokens = PromptTokens(tokenizer_of(encoder), 20)
    return padded(tokens.encode(prompts(9)), tokens.pad, CPU)


def test_scores_are_those_of_the_whole_encoder(network, batch):
    """Only the first token in the last layer, and yet the same."""
    ids, mask = batch
    states = network.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    expected = network.module["head"](states[:, 0])[:, 0]
    torch.testing.assert_close(network.score(ids, mask), expected)


def test_it_goes_on_from_any_layer(network, batch):
    """Hidden states of the lower layers lead to the same score and the same mean."""
    ids, mask = batch
    for done in (0, 1):
        hidden = network.embed(ids, mask, done)
        score = network.score_hidden(hidden, mask, done)
        torch.testing.assert_close(score, network.score(ids, mask))
        mean = network.mean_hidden_after(hidden, mask, done)
        torch.testing.assert_close(mean, network.mean_hidden(ids, mask))


def test_other_architectures_run_as_they_are(network, batch):
    """Where the layers are not known, transformers runs them."""
    ids, mask = batch
    expected = network.score(ids, mask)
    network.config.position_embedding_type = "relative_key"
    try:
        assert not network.is_layered
        torch.testing.assert_close(network.score(ids, mask), expected)
    finally:
        network.config.position_embedding_type = "absolute"


def test_filling_changes_nothing(network, encoder):
    """A prompt's score does not depend on what it shares a batch with."""
    tokens = PromptTokens(tokenizer_of(encoder), 20)
    ids = tokens.encode(prompts(30))
    together = score_all(network, ids, tokens.pad, CPU)
    alone = [float(score_all(network, [row], tokens.pad, CPU)[0]) for row in ids]
    assert together == pytest.approx(alone, abs=1e-5)


def test_batches_for_scoring():
    """Each one once, shortest first, not too many tokens together."""
    ids = [[1] * length for length in (500, 3, 200, 9000, 7, 7)]
    batches = [batch.tolist() for batch in by_length(ids)]
    assert batches == [[1, 4, 5, 2, 0], [3]]
    assert max(map(len, by_length([[1]] * 200))) <= 64


def test_fewer_layers(encoder):
    """The first layers of the same encoder."""
    one = network_of(encoder, layers=1)
    assert one.num_layers == 1
    first = network_of(encoder).encoder.encoder.layer[0].state_dict()
    for name, weight in one.encoder.encoder.layer[0].state_dict().items():
        assert torch.equal(weight, first[name])
    with pytest.raises(RankingError, match=r"layers = 3 but .* has 2"):
        network_of(encoder, layers=3)


def test_no_such_encoder(tmp_path):
    """A folder that is not there, and one with nothing in it."""
    with pytest.raises(RankingError, match="no such folder"):
        network_of(str(tmp_path / "none"))
    with pytest.raises(RankingError, match="cannot be loaded as an encoder"):
        network_of(str(tmp_path))


def test_nothing_is_printed(tmp_path, capfd):
    """Standard output is for results, and hints of libraries do not belong there."""
    folder = write_encoder(tmp_path / "e")
    capfd.readouterr()
    network_of(folder)
    tokenizer_of(folder)
    assert capfd.readouterr() == ("", "")


def test_an_encoder_of_the_hub_by_its_commit(hub, encoder):
    """The newest by default, an older one if named, and no commit of a folder."""
    assert revision_of("org/tiny") == "b" * 40
    assert network_of("org/tiny").num_layers == 2
    assert network_of("org/tiny", revision="a" * 40).num_layers == 1
    (hub / "refs" / "main").write_text("a" * 40)
    assert revision_of("org/tiny") == "a" * 40
    assert revision_of(encoder) is None
    with pytest.raises(RankingError, match="org/none cannot be loaded"):
        revision_of("org/none")


def test_a_tokenizer_of_the_hub_by_its_commit(hub):
    """An older commit's tokenizer is that commit's, though the hub has a newer one."""
    file = hub / "snapshots" / ("a" * 40) / "tokenizer_config.json"
    content = json.loads(file.read_text()) | {"model_max_length": 7}
    file.write_text(json.dumps(content))
    assert tokenizer_of("org/tiny").model_max_length == 64
    assert tokenizer_of("org/tiny", "a" * 40).model_max_length == 7


def test_a_commit_that_is_not_known(monkeypatch, tmp_path):
    """A file elsewhere than in the cache's layout is refused, not taken for one."""
    utils = pytest.importorskip("transformers").utils
    file = str(tmp_path / "config.json")
    monkeypatch.setattr(utils, "cached_file", lambda *_, **__: file)
    with pytest.raises(RankingError, match="org/tiny cannot be pinned"):
        revision_of("org/tiny")
