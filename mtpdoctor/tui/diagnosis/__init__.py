"""The Diagnosis region."""

from mtpdoctor.tui.diagnosis.region import DiagnosisRegion

__all__ = ["DiagnosisRegion"]
