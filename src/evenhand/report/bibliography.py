"""The one bibliography: the report prints the entries of the methods it used, the docs print all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """One work."""

    # authors, title, where: as printed.
    authors: str
    title: str
    where: str
    address: str = ""  # where it can be read, empty when not known

    def __str__(self) -> str:
        return f"{self.authors}. {self.title}. {self.where}."


SOURCES: dict[str, Source] = {
    "diciccio2020": Source(
        "C. DiCiccio, S. Vasudevan, K. Basu, K. Kenthapadi, D. Agarwal",
        "Evaluating fairness using permutation tests",
        "Proceedings of the 26th ACM SIGKDD Conference on Knowledge Discovery and Data Mining, 2020",
        "https://doi.org/10.1145/3394486.3403199",
    ),
    "si2021": Source(
        "N. Si, K. Murthy, J. Blanchet, V. A. Nguyen",
        "Testing group fairness via optimal transport projections",
        "International Conference on Machine Learning, 2021",
    ),
    "maity2021": Source(
        "S. Maity, S. Xue, M. Yurochkin, Y. Sun",
        "Statistical inference for individual fairness",
        "International Conference on Learning Representations, 2021",
    ),
    "wang2019": Source("H. Wang, B. Ustun, F. P. Calmon", "Auditing discrimination with influence functions", "2019"),
    "monjezi2025": Source(
        "V. Monjezi, V. Kreinovich, A. Trivedi, S. Tizpaz-Niari",
        "Fairness testing through extreme value theory",
        "2025",
    ),
    "angelopoulos2021": Source(
        "A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan, L. Lei",
        "Learn then test: calibrating predictive algorithms to achieve risk control",
        "2021",
        "https://arxiv.org/abs/2110.01052",
    ),
    "laufer2023": Source(
        "B. Laufer-Goldshtein, A. Fisch, R. Barzilay, T. Jaakkola",
        "Efficiently controlling multiple risks with Pareto testing",
        "International Conference on Learning Representations, 2023",
        "https://arxiv.org/abs/2210.07913",
    ),
    "tango1998": Source(
        "T. Tango",
        "Equivalence test and confidence interval for the difference in proportions for the paired-sample design",
        "Statistics in Medicine 17, 891–908, 1998",
    ),
    "chung2013": Source(
        "E. Chung, J. P. Romano",
        "Exact and asymptotically robust permutation tests",
        "Annals of Statistics 41, 484–507, 2013",
    ),
    "delong1988": Source(
        "E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson",
        "Comparing the areas under two or more correlated receiver operating characteristic curves: "
        "a nonparametric approach",
        "Biometrics 44, 837–845, 1988",
    ),
    "miettinen1985": Source(
        "O. Miettinen, M. Nurminen",
        "Comparative analysis of two rates",
        "Statistics in Medicine 4, 213–226, 1985",
    ),
    "mantel1959": Source(
        "N. Mantel, W. Haenszel",
        "Statistical aspects of the analysis of data from retrospective studies of disease",
        "Journal of the National Cancer Institute 22, 719–748, 1959",
    ),
    "hosking1987": Source(
        "J. R. M. Hosking, J. R. Wallis",
        "Parameter and quantile estimation for the generalized Pareto distribution",
        "Technometrics 29, 339–349, 1987",
    ),
    "xu2019": Source(
        "L. Xu, M. Skoularidou, A. Cuesta-Infante, K. Veeramachaneni",
        "Modeling tabular data using conditional GAN",
        "Advances in Neural Information Processing Systems, 2019",
    ),
    "schuirmann1987": Source(
        "D. J. Schuirmann",
        "A comparison of the two one-sided tests procedure and the power approach for assessing the equivalence of "
        "average bioavailability",
        "Journal of Pharmacokinetics and Biopharmaceutics 15, 657–680, 1987",
    ),
    "chan1999": Source(
        "I. S. F. Chan, Z. Zhang",
        "Test-based exact confidence intervals for the difference of two binomial proportions",
        "Biometrics 55, 1202–1209, 1999",
    ),
    "hanley1982": Source(
        "J. A. Hanley, B. J. McNeil",
        "The meaning and use of the area under a receiver operating characteristic (ROC) curve",
        "Radiology 143, 29–36, 1982",
    ),
    "casagrande1978": Source(
        "J. T. Casagrande, M. C. Pike, P. G. Smith",
        "An improved approximate formula for calculating sample sizes for comparing two binomial distributions",
        "Biometrics 34, 483–486, 1978",
    ),
    "holm1979": Source(
        "S. Holm",
        "A simple sequentially rejective multiple test procedure",
        "Scandinavian Journal of Statistics 6, 65–70, 1979",
    ),
    "benjamini1995": Source(
        "Y. Benjamini, Y. Hochberg",
        "Controlling the false discovery rate: a practical and powerful approach to multiple testing",
        "Journal of the Royal Statistical Society B 57, 289–300, 1995",
    ),
    "bretz2009": Source(
        "F. Bretz, W. Maurer, W. Brannath, M. Posch",
        "A graphical approach to sequentially rejective multiple test procedures",
        "Statistics in Medicine 28, 586–604, 2009",
        "https://doi.org/10.1002/sim.3495",
    ),
    "hothorn2008": Source(
        "T. Hothorn, F. Bretz, P. Westfall",
        "Simultaneous inference in general parametric models",
        "Biometrical Journal 50, 346–363, 2008",
        "https://doi.org/10.1002/bimj.200810425",
    ),
    "westfall1993": Source("P. H. Westfall, S. S. Young", "Resampling-Based Multiple Testing", "Wiley, 1993"),
    "phipson2010": Source(
        "B. Phipson, G. K. Smyth",
        "Permutation p-values should never be zero: calculating exact p-values when permutations are randomly drawn",
        "Statistical Applications in Genetics and Molecular Biology 9, article 39, 2010",
    ),
    "rockafellar2000": Source(
        "R. T. Rockafellar, S. Uryasev",
        "Optimization of conditional value-at-risk",
        "Journal of Risk 2, 21–41, 2000",
    ),
    "hartigan1969": Source(
        "J. A. Hartigan",
        "Using subsample values as typical values",
        "Journal of the American Statistical Association 64, 1303–1317, 1969",
    ),
}
