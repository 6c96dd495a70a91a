r"""What every metric and family computes, in LaTeX, and what its symbols mean ($...$ is set as mathematics)."""

from collections.abc import Mapping
from types import MappingProxyType

SYMBOLS = (
    r"$z_j$ are the $D$ codes, $v_k$ the $K$ factors, $N$ the number of rows; $I$ is mutual information, $H$ entropy, "
    r"both in nats."
)

METRIC_FORMULAS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "mig": (
            r"\mathrm{MIG} = \frac{1}{K} \sum_{k=1}^{K} \frac{1}{H(v_k)} "
            r"\left( I(z_{j_k}; v_k) - \max_{j \ne j_k} I(z_j; v_k) \right), \qquad j_k = \arg\max_j I(z_j; v_k)",
            r"Codes are cut into 20 bins of equal width; $I$ is the plug-in estimate over rows.",
        ),
        "mig_exact": (
            r"I(z_j; v_k) = \sum_{v} p(v) \, \mathrm{KL}\left( q(z_j | v_k = v) \,\|\, q(z_j) \right), \qquad "
            r"q(z_j | v_k = v) = \frac{1}{N_v} \sum_{n: v_k^{(n)} = v} q(z_j | x_n)",
            r"The score is the gap of MIG with this $I$. $q(z_j | x_n)$ is the Gaussian posterior of one image, and "
            r"$q(z_j)$ the mixture over all $N$.",
        ),
        "dci_lasso": (
            r"D = \sum_i \rho_i \left( 1 - H_K(P_{i \cdot}) \right), \qquad P_{ij} = \frac{R_{ij}}{\sum_k R_{ik}}, "
            r"\qquad \rho_i = \frac{\sum_j R_{ij}}{\sum_{ij} R_{ij}}, \qquad R_{ij} = |W_{ij}|",
            r"$W$ are the weights of one lasso per factor on standardised codes; $H_K$ is entropy to the base $K$. "
            r"Completeness is $C_j = 1 - H_D(\tilde{P}_{\cdot j})$ with columns made to sum to 1, informativeness the "
            r"normalised error on test rows.",
        ),
        "dci_forest": (
            r"D = \sum_i \rho_i \left( 1 - H_K(P_{i \cdot}) \right), \qquad P_{ij} = \frac{R_{ij}}{\sum_k R_{ik}}, "
            r"\qquad \rho_i = \frac{\sum_j R_{ij}}{\sum_{ij} R_{ij}}",
            r"$R_{ij}$ is the share of code $i$ in the decrease of impurity of a random forest of ten trees that "
            r"predicts factor $j$.",
        ),
        "dci_boosted": (
            r"D = \sum_i \rho_i \left( 1 - H_K(P_{i \cdot}) \right), \qquad P_{ij} = \frac{R_{ij}}{\sum_k R_{ik}}, "
            r"\qquad \rho_i = \frac{\sum_j R_{ij}}{\sum_{ij} R_{ij}}",
            r"$R_{ij}$ is the total gain of code $i$ in 100 boosted trees of depth 3 that classify factor $j$.",
        ),
        "med": (
            r"\mathrm{MED} = \sum_i \rho_i \left( 1 - H_K(P_{i \cdot}) \right), \qquad "
            r"P_{ik} = \frac{I(z_i; v_k)}{\sum_l I(z_i; v_l)}, \qquad \rho_i = \frac{\sum_k I(z_i; v_k)}{\sum_{ik} I(z_i; v_k)}",
            r"Disentanglement of DCI with information in place of importance.",
        ),
        "sap": (
            r"\mathrm{SAP} = \frac{1}{K} \sum_{k=1}^{K} \left( S_{j_k k} - \max_{j \ne j_k} S_{jk} \right), \qquad "
            r"S_{jk} = \frac{\mathrm{Cov}(z_j, v_k)^2}{\mathrm{Var}(z_j) \, \mathrm{Var}(v_k)}",
            r"For categorical factors $S_{jk}$ is the accuracy of a linear support vector machine on $z_j$ alone; "
            r"$j_k$ is the code of largest $S_{jk}$.",
        ),
        "snc": (
            r"\mathrm{SNC} = \frac{1}{K} \sum_{k=1}^{K} \max\left(0, \frac{a_k - r_k}{1 - r_k}\right), \qquad "
            r"\pi = \arg\max_{\pi \text{ one to one}} \sum_k I(z_{\pi(k)}; v_k)",
            r"$a_k$ is the accuracy on test rows with which intervals of the one code $z_{\pi(k)}$ name the level of "
            r"factor $k$, $r_k$ that of guessing.",
        ),
        "nk": (
            r"\mathrm{NK} = \frac{1}{K} \sum_{k=1}^{K} \left( A_k(z) - A_k(z_{-\pi(k)}) \right), \qquad "
            r"A = \max\left(0, \frac{a - r}{1 - r}\right)",
            r"$a$ is the accuracy of a perceptron with one hidden layer of 256, once on all codes and once without the "
            r"code $\pi(k)$ that is aligned with factor $k$; $r$ is that of guessing.",
        ),
        "modularity": (
            r"\mathrm{Modularity} = \frac{1}{D} \sum_{j=1}^{D} \left( 1 - "
            r"\frac{\sum_{k \ne k_j} I(z_j; v_k)^2}{(K - 1) \, I(z_j; v_{k_j})^2} \right), \qquad "
            r"k_j = \arg\max_k I(z_j; v_k)",
            r"Codes without any information are left out of the mean.",
        ),
        "irs": (
            r"\mathrm{IRS} = \frac{\sum_j M_j \max_k R_{jk}}{\sum_j M_j}, \qquad "
            r"R_{jk} = 1 - \frac{1}{V_k} \sum_{v} \frac{Q_{.99}\left( |z_j - \mathbb{E}[z_j | v_k = v]| \; | \; v_k = v \right)}{M_j}",
            r"$M_j$ is the largest deviation of code $j$ from its mean, $V_k$ the number of levels of factor $k$, "
            r"$Q_{.99}$ the 99 % quantile.",
        ),
        "factor_leakage": (
            r"\mathrm{leakage} = \frac{1}{D - 1} \sum_{i=1}^{D-1} \frac{1}{K (D - i)} \sum_{k=1}^{K} \sum_{r > i} "
            r"\frac{I_{(r)k}}{I_{(1)k}}",
            r"$I_{(r)k}$ is the information about factor $k$ of the code that ranks $r$-th for it.",
        ),
        "amari": (
            r"e = \sum_{i} \left( \frac{\sum_{j} R_{ij}}{\max_j R_{ij}} - 1 \right) + "
            r"\sum_{j} \left( \frac{\sum_{i} R_{ij}}{\max_i R_{ij}} - 1 \right)",
            r"$R$ is the importance matrix; the score is $e$ over the largest value that it can take.",
        ),
        "explicitness": (
            r"\mathrm{Explicitness} = \frac{1}{K} \sum_{k=1}^{K} \frac{1}{V_k} \sum_{v} \left( 2 \, \mathrm{AUC}_{kv} - 1 \right)",
            r"$\mathrm{AUC}_{kv}$ is the area under the ROC curve, on test rows, of a logistic regression on all codes "
            r"that tells level $v$ of factor $k$ from the others.",
        ),
        "linear_accuracy": (
            r"\mathrm{score} = \frac{1}{K} \sum_{k=1}^{K} \max\left(0, \frac{a_k - r_k}{1 - r_k}\right)",
            r"$a_k$ is the accuracy on test rows of softmax regression on all codes, $r_k$ that of guessing.",
        ),
        "mlp_accuracy": (
            r"\mathrm{score} = \frac{1}{K} \sum_{k=1}^{K} \max\left(0, \frac{a_k - r_k}{1 - r_k}\right)",
            r"$a_k$ is the accuracy on test rows of a perceptron with one hidden layer of 256 on all codes, $r_k$ that "
            r"of guessing.",
        ),
        "zero_shot": (
            r"\mathrm{error} = \frac{1}{K} \sum_{k=1}^{K} "
            r"\sqrt{ \frac{1}{|G|} \sum_{n \in G} \frac{(\hat{v}_k^{(n)} - v_k^{(n)})^2}{\sigma_k^2} }",
            r"$G$ are the rows of the gap, which the regressors never saw, $\sigma_k$ the standard deviation of factor "
            r"$k$ over the training rows.",
        ),
        "beta_vae_score": (
            r"\mathrm{score} = P\left( \hat{y}(\bar{d}) = y \right), \qquad "
            r"\bar{d} = \frac{1}{B} \sum_{b=1}^{B} \left| z^{(b,1)} - z^{(b,2)} \right|",
            r"The $B = 64$ pairs of a point share the level of factor $y$; $\hat{y}$ is a linear classifier trained on "
            r"10 000 such points.",
        ),
        "factor_vae_score": (
            r"\mathrm{score} = P\left( \hat{y}(j) = y \right), \qquad "
            r"j = \arg\min_j \frac{\mathrm{Var}(z_j | v_y = v)}{\mathrm{Var}(z_j)}",
            r"Each vote draws 64 rows with one level $v$ of one factor $y$; $\hat{y}(j)$ is the factor for which code "
            r"$j$ was chosen most often in 10 000 votes.",
        ),
        "elbo_terms": (
            r"\frac{1}{N} \sum_n \mathrm{KL}\left( q(z|x_n) \,\|\, p(z) \right) = "
            r"I_q(z; n) + \mathrm{KL}\left( q(z) \,\|\, \prod_j q(z_j) \right) + "
            r"\sum_j \mathrm{KL}\left( q(z_j) \,\|\, p(z_j) \right)",
            r"The three parts are the index-code information, the total correlation and the dimension-wise divergence; "
            r"$q(z)$ is the mixture of the posteriors of all images.",
        ),
        "d_lsbd": (
            r"\mathcal{D}_{\mathrm{LSBD}} = \frac{1}{K} \sum_{k=1}^{K} \min_{\omega} \frac{1}{N} \sum_{n} "
            r"\left\| \rho_{\omega}(g_n)^{-1} z_{n,k} - \frac{1}{N} \sum_{m} \rho_{\omega}(g_m)^{-1} z_{m,k} \right\|^2",
            r"$z_{n,k}$ is code $n$, less its mean over factor $k$, in the plane of its two first principal axes and "
            r"scaled to mean squared norm 1; $\rho_{\omega}(g)$ turns that plane by $\omega$ times the angle of the "
            r"factor's level, $|\omega| \leq 10$. $K$ counts the cyclic factors.",
        ),
        "independence_score": (
            r"I = 1 - \frac{1}{m (m-1)} \sum_{g \ne h} \mathbb{E}_z \left| \max_{a \in G_g, \, b \in G_h} "
            r"d_a(z) \cdot d_b(z) \right|, \qquad d_a(z) = \frac{z - \rho_a z}{\| z - \rho_a z \|}",
            r"$G_g$ are the steps along factor $g$, one level up and one down, and $\rho_a$ is the linear map of rank 2 "
            r"beside the identity that fits step $a$ best.",
        ),
        "mcc": (
            r"\mathrm{MCC} = \frac{1}{K} \sum_{k=1}^{K} s_k \, r'_{\pi(k) k}, \qquad "
            r"\pi = \arg\max_{\pi \text{ one to one}} \sum_k |r_{\pi(k) k}|, \qquad s_k = \mathrm{sign} \, r_{\pi(k) k}",
            r"$r_{jk}$ is the correlation of $z_j$ and $v_k$ on one half of the rows, $r'_{jk}$ that on the other half; the "
            r"halves change places, and the score is the mean of both.",
        ),
        "r2": (
            r"R^2 = \frac{1}{K} \sum_{k=1}^{K} \left( 1 - "
            r"\frac{\sum_n (v_k^{(n)} - a_k - w_k^{\top} z^{(n)})^2}{\sum_n (v_k^{(n)} - \bar{v}_k)^2} \right)",
            r"The intercept $a_k$ and the weights $w_k$ are fitted to one half of the rows, the sums run over the other half; "
            r"the halves change places, and the score is the mean of both. With `regressor` a kernel or a perceptron takes "
            r"the place of the line.",
        ),
        "infomec": (
            r"M = \frac{1}{|A|} \sum_{i \in A} \frac{\max_k S_{ik} / \sum_k S_{ik} - 1/K}{1 - 1/K}, \qquad "
            r"S_{ik} = \frac{I(z_i; v_k)}{H(v_k)}, \qquad E = \frac{1}{K} \sum_{k=1}^{K} \left( 1 - "
            r"\frac{\mathrm{CE}_k}{\mathrm{CE}_0} \right)",
            r"$A$ are the active codes, $M$ modularity and $E$ explicitness; compactness is $M$ with factors and active "
            r"codes in each other's place. $I$ is estimated by 10 nearest neighbours, $\mathrm{CE}$ is the cross-entropy "
            r"of logistic regression on all codes, and on none.",
        ),
        "dci_es": (
            r"E = \frac{1}{K} \sum_{k=1}^{K} \left( 1 - \frac{2}{(\kappa_{\max} - \kappa_{\min}) \, b_k} "
            r"\int_{\kappa_{\min}}^{\kappa_{\max}} \left( \ell_k(\kappa) - \min \ell_k \right) d\kappa \right)",
            r"$\ell_k(\kappa)$ is the least test loss of forests of depth up to $\kappa$, 1 to 32, for factor $k$: $1 - R^2$, or "
            r"the rate of wrong classes; $b_k$ is that of a constant. Of other probes $\kappa$ is the logarithm of the number of "
            r"parameters (`mlp`) or features (`rff`).",
        ),
        "jemmig": (
            r"\mathrm{JEMMIG} = \frac{1}{K} \sum_{k=1}^{K} \left( 1 - \frac{H(z_{i_k}, v_k) - I(z_{i_k}; v_k) + "
            r"I(z_{s_k}; v_k)}{H(v_k) + \log B} \right), \qquad i_k = \arg\max_i I(z_i; v_k)",
            r"$s_k$ is the code that knows second most of factor $k$; codes are cut into $B = 20$ bins of equal width.",
        ),
        "dcimig": (
            r"\mathrm{DCIMIG} = \frac{\sum_k \max_{i: k_i = k} g_i}{\sum_k H(v_k)}, \qquad "
            r"g_i = I(z_i; v_{k_i}) - \max_{l \ne k_i} I(z_i; v_l), \qquad k_i = \arg\max_k I(z_i; v_k)",
            r"Codes are cut into 20 bins of equal width; a factor that no code knows most of adds 0.",
        ),
        "mig_sup": (
            r"\mathrm{MIG\text{-}sup} = \frac{1}{D} \sum_{i=1}^{D} \frac{1}{H(z_i)} "
            r"\left( I(z_i; v_{k_i}) - \max_{l \ne k_i} I(z_i; v_l) \right), \qquad k_i = \arg\max_k I(z_i; v_k)",
            r"Codes are cut into 20 bins of equal width; a constant code adds 0.",
        ),
        "tad": (
            r"\mathrm{TAD} = \sum_{k: \, a_{i_k k} \geq .75, \; \max_j I(v_j; v_k) \leq .2 H(v_k)} "
            r"\left( a_{i_k k} - \max_{i \ne i_k} a_{ik} \right), \qquad i_k = \arg\max_i a_{ik}",
            r"$a_{ik}$ is the area under the ROC curve of code $i$ for attribute $k$, in the better direction.",
        ),
        "omes": (
            r"\mathrm{OMES} = \frac{1}{K} \sum_{k} \frac{\sum_i S_{ik}^2 \, (o_{ik} + m_{ik})}{2 \sum_i S_{ik}}, \qquad "
            r"o_{ik} = 1 - \frac{1}{K} \sum_{l} \left| [k = l] - S_{il} \right|, \qquad "
            r"m_{ik} = 1 - \frac{1}{D} \sum_{j} \left| [i = j] - S_{jk} \right|",
            r"$S_{ik}$ is 1 less the absolute correlation of code $i$ between the rows of all pairs that differ in factor "
            r"$k$ only.",
        ),
        "factorised_support": (
            r"\mathrm{HFS} = \frac{1}{|B|} \sum_{b \in B} \sum_{i < j} \max_{m, n \in b} \min_{r \in b} "
            r"\left\| (z_i^{(m)}, z_j^{(n)}) - (z_i^{(r)}, z_j^{(r)}) \right\|^2",
            r"$B$ are batches of 128 rows; codes are standardised.",
        ),
        "tmex": (
            r"\mathrm{T\text{-}MEX} = \sum_{ik} \left| W_{ik} - E_{ik} \right|, \qquad W_{ik} = \left[ \, 2 \Phi(-|T_{ik}|) "
            r"\leq .05 \, \right], \qquad T_{ik} = \sqrt{N} \, \frac{\mathrm{mean}(r_i r_k)}{\mathrm{sd}(r_i r_k)}",
            r"$r_i$ and $r_k$ are the residuals of code $i$ and of factor $k$ by least squares from all other factors; $E$ "
            r"is what should depend, by default a code of its own for each factor, matched on other rows.",
        ),
        "udr": (
            r"\mathrm{UDR}_{ij} = \frac{1}{d_i + d_j} \left( \sum_b \frac{r_b^2 \, I_{\mathrm{KL}}(b)}{\sum_a R(a, b)} + "
            r"\sum_a \frac{r_a^2 \, I_{\mathrm{KL}}(a)}{\sum_b R(a, b)} \right)",
            r"$R(a, b)$ says how much latent $b$ of model $j$ matters for latent $a$ of model $i$; $r_a$ and $r_b$ are "
            r"the largest entries of its rows and columns, $I_{\mathrm{KL}}$ is 1 for latents whose KL is above 0.01, "
            r"and $d$ counts these. A model's score is the median over the models $j$ that it is compared with.",
        ),
    }
)

_R = r"-\mathbb{E}_{q(z|x)} \log p(x|z)"
FAMILY_SYMBOLS = (
    r"$q(z|x) = \mathcal{N}(\mu, \mathrm{diag}\,\sigma^2)$ is the encoder's posterior, $p(x|z)$ the decoder, "
    r"$\mathrm{KL}_j$ the divergence of latent $j$ from its prior. What is written is minimised, in nats per image."
)

FAMILY_FORMULAS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "pca": (
            r"z = W^{\top} (x - \bar{x}), \qquad \hat{x} = \bar{x} + W z",
            r"The columns of $W$ are the first principal axes of the images. Nothing is trained.",
        ),
        "vae": (rf"{_R} + \sum_j \mathrm{{KL}}_j", ""),
        "beta_vae": (
            rf"{_R} + \beta \sum_j \mathrm{{KL}}_j",
            r"$\beta > 1$ presses on the capacity of all latents alike.",
        ),
        "cci_vae": (
            rf"{_R} + \gamma \left| \sum_j \mathrm{{KL}}_j - C(t) \right|",
            r"The capacity $C$ rises in a straight line from 0 to `c_max` over `capacity_steps` steps.",
        ),
        "factor_vae": (
            rf"{_R} + \sum_j \mathrm{{KL}}_j + \gamma \, \mathbb{{E}}_{{q(z)}} \log \frac{{D(z)}}{{1 - D(z)}}",
            r"The discriminator $D$ is trained to tell samples of $q(z)$ from samples whose dimensions are permuted, "
            r"each on its own, over the batch.",
        ),
        "beta_tcvae": (
            rf"{_R} + \alpha \, I_q(z; n) + \beta \, \mathrm{{KL}}\left( q(z) \,\|\, \prod_j q(z_j) \right) + "
            r"\gamma \sum_j \mathrm{KL}\left( q(z_j) \,\|\, p(z_j) \right)",
            r"$\log q(z)$ is estimated from the minibatch, weighted or stratified. `prior=\"factorial_flow\"` learns "
            r"each $p(z_j)$ as a normalizing flow.".replace("\\", ""),
        ),
        "dip_vae_i": (
            rf"{_R} + \sum_j \mathrm{{KL}}_j + \lambda_{{od}} \sum_{{i \ne j}} \mathrm{{Cov}}[\mu]_{{ij}}^2 + "
            r"\lambda_d \sum_i \left( \mathrm{Cov}[\mu]_{ii} - 1 \right)^2",
            r"$\mathrm{Cov}[\mu]$ is the covariance of the posterior means over the batch.",
        ),
        "dip_vae_ii": (
            rf"{_R} + \sum_j \mathrm{{KL}}_j + \lambda_{{od}} \sum_{{i \ne j}} \mathrm{{Cov}}[z]_{{ij}}^2 + "
            r"\lambda_d \sum_i \left( \mathrm{Cov}[z]_{ii} - 1 \right)^2, \qquad "
            r"\mathrm{Cov}[z] = \mathrm{Cov}[\mu] + \mathbb{E}\left[ \mathrm{diag}\,\sigma^2 \right]",
            r"The covariance is that of the aggregate posterior.",
        ),
        "info_gan": (
            r"\min_{G, Q} \max_{C} \; \mathbb{E}_x C(x) - \mathbb{E}_c C(G(c)) - 10 \, \mathbb{E}_{\tilde{x}} "
            r"\left( \| \nabla C(\tilde{x}) \| - 1 \right)^2 - \lambda \, \mathbb{E}_c \log Q(c | G(c))",
            r"$C$ is a Wasserstein critic with gradient penalty, $G$ the generator, and $Q$, which shares the critic's "
            r"layers, names the code $c$ of an image; its mean is the representation.",
        ),
        "ada_gvae": (
            r"\frac{1}{2} \sum_{i=1}^{2} \left( -\mathbb{E}_{\tilde{q}_i} \log p(x_i | z) + "
            r"\beta \, \mathrm{KL}\left( \tilde{q}_i \,\|\, p \right) \right), \qquad "
            r"\tilde{q}_{ij} = \mathcal{N}\left( \frac{\mu_{1j} + \mu_{2j}}{2}, \frac{\sigma_{1j}^2 + \sigma_{2j}^2}{2} \right)"
            r" \text{ where latent } j \text{ is shared}",
            r"The two images of a pair differ in some factors. A latent counts as shared when the divergence of the two "
            r"posteriors is below the middle between the smallest and the largest of all latents.",
        ),
        "ada_ml_vae": (
            r"\frac{1}{2} \sum_{i=1}^{2} \left( -\mathbb{E}_{\tilde{q}_i} \log p(x_i | z) + "
            r"\beta \, \mathrm{KL}\left( \tilde{q}_i \,\|\, p \right) \right), \qquad "
            r"\tilde{\sigma}_j^2 = \frac{2 \sigma_{1j}^2 \sigma_{2j}^2}{\sigma_{1j}^2 + \sigma_{2j}^2}, \quad "
            r"\tilde{\mu}_j = \frac{\tilde{\sigma}_j^2}{2} \left( \frac{\mu_{1j}}{\sigma_{1j}^2} + \frac{\mu_{2j}}{\sigma_{2j}^2} \right)",
            r"As `ada_gvae`, with the means of shared latents weighted by their precision.",
        ),
        "delta_vae": (
            rf"{_R} + \sum_s \left( -\frac{{1}}{{2}} \log t_s + \frac{{1}}{{2}} \log 2\pi - \frac{{1}}{{2}} \right)",
            r"Latents live on circles: the posterior on circle $s$ is a random walk of duration $t_s$ from the encoder's "
            r"location, and the term is its divergence from the uniform distribution, for small $t_s$.",
        ),
        "lsbd_vae": (
            r"\mathcal{L}_{\Delta\mathrm{VAE}} + \gamma \, \frac{1}{M} \sum_{m=1}^{M} "
            r"\left\| \rho(g_m)^{-1} z_m - \bar{z} \right\|^2, \qquad "
            r"\bar{z} = \Pi\left( \frac{1}{M} \sum_m \rho(g_m)^{-1} z_m \right)",
            r"The images $x_m = g_m \cdot x_1$ of a group are labelled by their transformations; $\rho(g)$ turns a "
            r"circle by the known angle, $\Pi$ projects back onto it, and the decoder is given $\rho(g_m) \bar{z}$. "
            r"Unlabelled images are trained as in `delta_vae`.",
        ),
        "quessard": (
            r"\frac{1}{T} \sum_{t=0}^{T} \mathrm{BCE}\left( p(\rho_{a_t} \cdots \rho_{a_1} z_0), x_t \right) + "
            r"\lambda \frac{1}{|A|} \sum_a \left( \sum_{i<j} (\theta^a_{ij})^2 - \max_{i<j} (\theta^a_{ij})^2 \right)",
            r"Only the first frame is encoded, to a unit vector $z_0$. Each action $a$ has a matrix $\rho_a$ that is a "
            r"product of rotations by $\theta^a_{ij}$ in all planes; the second term leaves it one plane.",
        ),
        "forward_vae": (
            rf"{_R} + \beta \, \alpha^s \sum_j \mathrm{{KL}}_j + \left\| A_a z_t - \mu_{{t+1}} \right\|^2",
            r"$A_a$ is one linear map per action, free on the plane that the action is given and the identity "
            r"elsewhere; $\alpha^s$ fades the divergence out over the steps $s$.",
        ),
        "parted_vae": (
            rf"{_R} + \gamma_z | C_z(t) - \mathrm{{KL}}_z | + \gamma_u | C_u(t) - \mathrm{{KL}}_u | + "
            r"\gamma_c \mathrm{KL}\left( \bar{q}(c) \,\|\, p(c) \right) + \gamma_h H[q(c|x)] + "
            r"\gamma_{bc} \sum_{i<j} \max(0, \mathrm{BC}_{ij} - \tau)",
            r"$c$ is the class, $u$ what depends on it and $z$ what does not; each class has a learned prior for $u$, "
            r"and $\mathrm{BC}_{ij}$ is the Bhattacharyya coefficient of two of these.",
        ),
        "weak_de": (
            r"\mathrm{BCE}(p(E(x)), x), \quad \mathrm{BCE}(A(E(x)), 1), \qquad "
            r"p(z) = \frac{1}{|k|} \sum_k \mathcal{N}\left( \mathrm{mean}\, Z_k, \; c \, \mathrm{Cov}\, Z_k \right)",
            r"$A$ tells codes from samples of the prior. After a warm-up the prior becomes one Gaussian per combination "
            r"$k$ of factor values, fitted once to the codes $Z_k$ of labelled images.",
        ),
        "mtd": (
            rf"{_R} + \mathrm{{KL}}_c + \sum_k \mathrm{{KL}}\left( q(s_k|x) \,\|\, \mathcal{{N}}(m_{{k, y_k}}, \sigma_0^2) \right)"
            r" + \sum_k \sum_{v < w} \max\left( 0, \delta - \| m_{kv} - m_{kw} \| \right)^2 + L_{\mathrm{indep}}",
            r"$c$ is a block for content and $s_k$ one per factor, whose value $y_k$ is known; $m_{kv}$ are learned. "
            r"$L_{\mathrm{indep}}$ penalises what a block tells about the factors of the others. The authors' equations "
            r"are not public: this is a reconstruction.",
        ),
    }
)
