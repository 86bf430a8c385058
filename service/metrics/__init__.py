"""One file per metric, and the registry that lists them."""

from service.metrics.base import Metric
from service.metrics.clipscore import clipscore
from service.metrics.dsg import dsg
from service.metrics.hpsv2 import hpsv2
from service.metrics.pickscore import pickscore
from service.metrics.vqascore import vqascore

REGISTRY = {
    metric.name: metric
    for metric in (
        Metric("vqascore", vqascore, ("vqa",), (0, 1), "Lin et al. 2024, arXiv 2404.01291"),
        Metric("clipscore", clipscore, ("clip",), (-1, 1), "Hessel et al. 2021, arXiv 2104.08718"),
        Metric("dsg", dsg, ("vqa",), (0, 1), "Cho et al. 2024, arXiv 2310.18235", may_use=("questions",)),
        Metric("pickscore", pickscore, ("clip",), (-1, 1), "Kirstain et al. 2023, arXiv 2305.01569"),
        Metric("hpsv2", hpsv2, ("clip",), (-1, 1), "Wu et al. 2023, arXiv 2306.09341"),
    )
}
