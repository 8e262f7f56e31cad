import pytest

from difflens.diffs.quality.margins import HIGHER, LOWER, NEITHER, direction


@pytest.mark.parametrize(
    "metric",
    [
        "accuracy", "eval_accuracy", "val/acc", "test_f1_macro", "Accuracy@5", "recall@10",
        "ROUGE-L", "rouge1", "rougeLsum", "BLEU", "auc", "mAP", "top5_acc", "acc_norm,none",
        "exact_match", "pass@1", "tokens_per_second", "eval_samples_per_second", "throughput",
        "log_likelihood", "R2", "f1", "ndcg_at_10", "evalAccuracy", "win_rate",
    ],
)  # fmt: skip
def test_more_is_better_where_the_name_says_so(metric):
    assert direction(metric) == "higher"


@pytest.mark.parametrize(
    "metric",
    [
        "loss", "eval_loss", "val/loss", "trainLoss", "perplexity", "word_perplexity", "wer",
        "mean_squared_error", "RMSE", "latency_p99_ms", "error_rate", "eval_runtime",
        "negative_log_likelihood", "bits_per_byte", "false_positive_rate", "brier_score",
        "log_loss", "calibration_error", "time_to_first_token", "peak_memory",
    ],
)  # fmt: skip
def test_less_is_better_where_the_name_says_so(metric):
    assert direction(metric) == "lower"


@pytest.mark.parametrize(
    "metric",
    [
        "", "sparkle", "anomaly_score", "epoch", "lossless", "accurate", "accuracy_loss",
        "acc_stderr",
        "loss_scale", "accuracy_drop", "eval_loss_std",
    ],
)  # fmt: skip
def test_a_name_that_does_not_tell_has_no_direction(metric):
    assert direction(metric) is None


def test_no_word_votes_twice():
    assert not HIGHER & LOWER
    assert not (HIGHER | LOWER) & NEITHER
