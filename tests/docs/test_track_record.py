"""What is said of how far a choice can be trusted is what the fits and searches of evidence/ have shown."""

import pandas as pd
import pytest


def test_the_share_is_of_the_other_models_ties_half() -> None:
    from pages.track_record import shares

    models = pd.DataFrame(
        {
            "what": ["trained", "chosen", "trained", "trained", "trained"],
            "mig": [0.1, 0.2, 0.3, 0.2, 0.0],  # above two, level with one: 2.5 of 4
            "dci_boosted": [0.9, 0.1, 0.9, 0.9, 0.9],  # 0
            "mcc": [0.1, 0.4, 0.1, 0.1, 0.5],  # 3 of 4
        }
    )
    assert shares(models).to_dict() == pytest.approx({"mig": 2.5 / 4, "dci_boosted": 0, "mcc": 3 / 4})


def test_it_is_said_in_numbers_as_it_was_measured() -> None:
    from pages.track_record import of_all

    from unbraid.ranking import track_record

    n_datasets, share, low, high = of_all()
    assert n_datasets == track_record.DATASETS
    assert (track_record.SHARE, *track_record.INTERVAL) == pytest.approx((share, low, high), abs=0.005)
