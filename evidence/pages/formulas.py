r"""What every metric and family computes, in LaTeX, and what its symbols mean ($...$ is set as mathematics)."""

from collections.abc import Mapping
from types import MappingProxyType

SYMBOLS = (
    r"$z_j$ are the $D$ codes, $v_k$ the $K$ factors, $N$ the number of rows; $I$ is mutual information, $H$ entropy, "
    r"both in nats."
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
        "qlae": (
            r"-\log p(x|\hat{z}) + n \left( \lambda_q \frac{1}{D} \sum_j (\mathrm{sg}[z_j] - \hat{z}_j)^2 + "
            r"\lambda_c \frac{1}{D} \sum_j (z_j - \mathrm{sg}[\hat{z}_j])^2 \right), \qquad "
            r"\hat{z}_j = \mathrm{argmin}_{v \in V_j} | z_j - v |",
            r"$z$ is what the encoder says, $V_j$ the learned values of latent $j$, and $n$ the count of numbers in an "
            r"image. $\mathrm{sg}$ passes no gradient on, and the reconstruction's gradient by $\hat{z}$ is passed on to "
            r"$z$. Strong weight decay is a part of the method.",
        ),
        "qvae": (
            rf"{_R} + \beta \sum_j \mathrm{{KL}}\left( q(z_j|x) \,\|\, \mathrm{{uniform}} \right), \qquad "
            r"q(z_j = v|x) \propto \exp\left( -(e_j(x) - v)^2 \right)",
            r"$v$ is one of the learned values, which all latents share, and $e$ the encoder. Values are drawn by a "
            r"Gumbel-softmax.",
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
