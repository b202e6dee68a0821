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
    "imbens2004": Source(
        "G. W. Imbens, C. F. Manski",
        "Confidence intervals for partially identified parameters",
        "Econometrica 72, 1845–1857, 2004",
        "https://doi.org/10.1111/j.1468-0262.2004.00555.x",
    ),
    "kallus2022": Source(
        "N. Kallus, X. Mao, A. Zhou",
        "Assessing algorithmic fairness with unobserved protected class using data combination",
        "Management Science 68, 1959–1981, 2022",
        "https://arxiv.org/abs/1906.00285",
    ),
    "mccartan2024": Source(
        "C. McCartan, R. Fisher, J. Goldin, D. E. Ho, K. Imai",
        "Estimating racial disparities when race is not observed",
        "2024",
        "https://arxiv.org/abs/2303.02580",
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
    "blanchard2008": Source(
        "G. Blanchard, E. Roquain",
        "Two simple sufficient conditions for FDR control",
        "Electronic Journal of Statistics 2, 963–992, 2008",
    ),
    "tarone1990": Source(
        "R. E. Tarone",
        "A modified Bonferroni method for discrete data",
        "Biometrics 46, 515–522, 1990",
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
    "nyc2023": Source(
        "New York City Department of Consumer and Worker Protection",
        "Automated employment decision tools",
        "Rules of the City of New York, title 6, chapter 5, subchapter T, § 5-300 to § 5-304, 2023",
        "https://codelibrary.amlegal.com/codes/newyorkcity/latest/NYCrules/0-0-0-138530",
    ),
    "eeoc1978": Source(
        "Equal Employment Opportunity Commission, Civil Service Commission, Department of Labor, Department of Justice",
        "Uniform guidelines on employee selection procedures",
        "Code of Federal Regulations, title 29, part 1607, 1978",
        "https://www.ecfr.gov/current/title-29/subtitle-B/chapter-XIV/part-1607",
    ),
    "hartigan1969": Source(
        "J. A. Hartigan",
        "Using subsample values as typical values",
        "Journal of the American Statistical Association 64, 1303–1317, 1969",
    ),
    "turner2021": Source(
        "R. Turner, A. Ly, P. Grünwald",
        "Generic E-variables for exact sequential k-sample tests that allow for optional stopping",
        "2021",
        "https://arxiv.org/abs/2106.02693",
    ),
    "waudbysmith2024": Source(
        "I. Waudby-Smith, A. Ramdas",
        "Estimating means of bounded random variables by betting",
        "Journal of the Royal Statistical Society B 86, 1–27, 2024",
        "https://arxiv.org/abs/2010.09686",
    ),
    "fan2015": Source(
        "X. Fan, I. Grama, Q. Liu",
        "Exponential inequalities for martingales with applications",
        "Electronic Journal of Probability 20, 1–22, 2015",
    ),
    "vovk2021": Source(
        "V. Vovk, R. Wang",
        "E-values: calibration, combination and applications",
        "Annals of Statistics 49, 1736–1754, 2021",
        "https://arxiv.org/abs/1912.06116",
    ),
    "herbster1998": Source(
        "M. Herbster, M. K. Warmuth", "Tracking the best expert", "Machine Learning 32, 151–178, 1998"
    ),
    "chugg2023": Source(
        "B. Chugg, S. Cortes-Gomez, B. Wilder, A. Ramdas",
        "Auditing fairness by betting",
        "Advances in Neural Information Processing Systems, 2023",
        "https://arxiv.org/abs/2305.17570",
    ),
}
