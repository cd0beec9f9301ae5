"""The table of metric names: regular expressions (verbose: blanks and line ends mean nothing) over the bare name.

The bare name is lower case with ``_`` and ``/`` as the only separators and without its split (train, eval).
``roles.py`` asks from top to bottom and takes the first match. New frameworks' names go here and nowhere else.
"""

from __future__ import annotations

LOSS = r"(?:loss(?:es)?|cost|objective|criterion|nll|xent|ce)"
TERM = (
    r"box|bbox|cls|class|classifier|obj|objectness|dfl|iou|giou|mask|kpt|pose|seg|rpn\w*|centerness|reg|rcnn\w*|recon\w*|rec|"
    r"kld?|kl_?div\w*|mse|mae|l1|l2|huber|bce|dice|focal|ctc|att|aux\w*|commit\w*|vq|codebook|quant\w*|embed\w*|perceptual|"
    r"lpips|percep|style|content|feat\w*|fm|mel|stft|adv\w*|tv|cycle\w*|identity|idt|ssim|contrastive|clip|itc|itm|mlm|nsp|"
    r"distill\w*|soft|hard|router\w*|load_balanc\w*|balanc\w*|z|moe\w*|duration|dur|pitch|energy|stop|gate|attn\w*|"
    r"boundary|bc|ic|pde|physics|residual|data|smooth\w*|sparsity|l0|reg\w*|weight_decay|vb|vlb|noise|prior|"
    r"q[0-3]|acc|mtp\w*|load|importance|orth\w*|entropy_reg|consistency|depth|normal|color|rgb|sem\w*|inst\w*|edge"
)
LOWER = (
    r"mse|mae|rmse|rmsle|mape|smape|mean_(squared|absolute)(_percentage)?_error|root_mean_squared_error|l[12]_error|"
    r"\w*error(_rate)?|err|wer|cer|per|ter|eer|der|fid\w*|kid\w*|fvd|lpips|ece|brier\w*|bp[bcd]|"
    r"bits_per_\w+|epe|chamfer\w*|hausdorff\w*|hd95|abs_?rel|sq_?rel|fpr|fnr|nme|mpjpe|edit_distance|log_?loss|mcd|hamming\w*"
)
HIGHER = (
    r"(top|acc|prec)[_@]?\d+|(\w+_)?acc(uracy|uracies|s)?(_?(top)?[_@]?\d+)?|(\w+_)?accuracy_\w+|top_?\d+(_?acc\w*)?|"
    r"(\w+_)?(f1|f_?1_?score|f_?beta|fscore)(_\w+)?|precision\w*|recall\w*|specificity|sensitivity|"
    r"(\w+_)?(auc|auroc|roc_?auc|auprc|pr_?auc)(_\w+)?|"
    r"(\w+_)?m?(iou|jaccard)(_\w+)?|(\w+_)?dice(_(score|coef\w*))?|(sacre)?bleu(_?\d)?|rouge[_-]?(1|2|l|lsum)?\w*|"
    r"meteor|chrf\w*|cider|spice|exact_?match|em|mcc|matthews\w*|(cohen_?)?kappa|pearson\w*|spearman\w*|kendall\w*|r2(_score)?|"
    r"ndcg(@?\d+)?|mrr(@?\d+)?|(hits?(_rate)?|hr)[_@]?\d+|hit_rate|psnr|(ms_?)?ssim|inception_score|is_mean|win_?rate|success(_rate)?|"
    r"pass[_@]?\d+|mmlu\w*|hellaswag\w*|gsm8k\w*|arc_\w+|(\w+_)?score|correct|elbo|log_?likelihood|hel|silhouette|"
    r"correlation|corr|ppv|npv|lddt|tm_score|fitness|hota|mota|idf1|pck\w*|pq|sq|rq|nds|stoi|pesq|si_?sdr|sdr"
)
DETECTION = (
    r"(m?ap(_?(50|75|5095|0\.5)?)([_:-]?(0\.)?(50|75|95|0\.95|s|m|l|small|medium|large))?"
    r"|m?ap(_?[sml]|_\d+|@.*)?|ar(@?\d+)?)"
)

# fmt: off
TABLE: tuple[tuple[str | None, str], ...] = (
    # no curve to be judged: bests so far, ids
    (None, r"(^|[/_])best([/_]|$)|(^|[/_])(eta|remaining)(_|$)"),
    (None, r"^total_steps$|^(rank|seed|fold|trial|run|version|pid|gpu_id)$"),
    # schedules and switches
    ("coefficient", r"""
          (^|[/_])(kl_?(coef|ctl_coef|weight|beta)|ent(ropy)?_?(coef|weight)|beta|clip_?range(_vf)?|alpha|tau
            |gamma|vf_coef|(\w+_)?coef(ficient)?(?!_loss)|momentum|weight_decay|temperature|temp|sigma
            |epsilon_schedule|kl_weight|cfg_scale)$"""),
    ("exploration", r"(^|[/_ ])(exploration(_rate)?|epsilon|eps_greedy|%_time_spent_exploring)$"),
    ("logit-scale", r"(^|[/_])(logit_scale|logits?_temperature)$"),
    # gradients, weights, precision
    ("grad-norm", r"""
          (^|[/_])(total_|global_|raw_|unclipped_|clipped_|pre_?clip_|actor_|critic_|policy_|value_|g_|d_
            |l2_)?(grads?|gradients?)[_/]?(global_|total_|l2_|2(\.0)?_)?norm([_/](total|global|before_clip\w*
            |pre_?clip\w*|unclipped|raw|avg|l2|all))?$
        | (^|[/_])gnorm$
        | ^norm$
        | (^|/)(optim/)?(total_)?gradnorm$
        | ^l2_norm/grad/global$
        | (^|/)grad_norm/(actor|critic|policy)$"""),
    ("grad-norm-term", r"""
          (grad|gradient)s?(_?\d(\.0)?)?[_/]?(l2_)?norms?[_/].+
        | ^(grads?|gradients?)/.+
        | ^l2_norm/grad/.+
        | .+[_/.](grad|gradient)_?norm$"""),
    ("loss-scale", r"""
          (^|[/_])((loss|grad|amp|scaler|fp16)_?scale(r)?|scaler?/scale|scale|grad_scaler(/scale)?)$"""),
    ("skipped", r"""
          (^|[/_])(num(ber)?_?(of_)?)?(skipped|overflow(s|ed)?)(_?(iterations?|steps?|batches|updates
            |count))?$"""),
    ("nan-count", r"""
          (^|[/_])(num(ber)?_?(of_)?)?nans?(_?(iterations?|steps?|batches|count|grads?))?$
        | (^|[/_])non_?finite\w*$"""),
    ("weight-norm", r"(^|[/_])(param(eter)?s?|weights?|model)[_/]?(l2_)?norm$|^l2_norm/param/global$"),
    ("weight-norm-term", r"(param(eter)?s?|weights?)[_/]?(l2_)?norms?[_/].+|^l2_norm/param/.+|^weights?/.+"),
    ("update-ratio", r"update[_/]?(to[_/]?weight[_/]?)?ratios?|update_norm"),
    ("lr", r"""
          (^|[/_ ])(lr|learning_?rate)([/_-]?(pg|group|param_group|g|d|actor|critic|encoder|decoder|backbone
            |head|\w*adam\w*|sgd\w*)?[/_]?\d*)?$
        | ^(lr|learning_rate)[-_/].+
        | (^|/)(x|optim)/?(lr)\d*$
        | ^pg\d+$
        | optim\d+_lr\d+$
        | ^lr\d+$"""),
    # preference training
    ("reward-chosen", r"(^|/)rewards?[/_]chosen$"),
    ("reward-rejected", r"(^|/)rewards?[/_]rejected$"),
    ("reward-margin", r"(^|/)rewards?[/_]margins?$|^reward_margin$"),
    ("reward-accuracy", r"(^|/)rewards?[/_]accurac(y|ies)$"),
    ("logps", r"^(\w+/)?log_?(ps|probs?|its)[/_]\w+$|^logps$|^(ref_)?log_?probs?$"),
    # reinforcement learning
    ("zero-spread", r"frac_reward_zero_std|frac_zero_std|zero_std(_frac\w*)?|solve_none|solve_all"),
    ("reward-std", r"(^|/)(env/)?rewards?[/_]std$|^(critic/)?(scores?|rewards?)/std$|^return_std$"),
    ("reward-term-std", r"^rewards?/[^/]+/std$"),
    ("length-clipped", r"""
          (completion|response|output|answer|generation)s?[_/]?(length)?[/_](clip_?ratio|clipped_ratio
            |truncat\w*|overlong\w*)$
        | clipped_ratio$
        | truncation_ratio$"""),
    ("length", r"""
          (^|/)(completion|response|output|answer|generation|generated)s?[_/]?(mean_?)?(len(gth)?s?)$
        | ^num_tokens_generated$
        | ^(tokens|seq(uence)?)_?(mean_)?len(gth)?$
        | ^completions/mean_terminated_length$
        | ^(objective/)?non_score_len\w*$"""),
    ("episode-length", r"""
          (^|/|_)(ep(isode)?_?len(gth)?s?(_?mean)?|eplenmean|episodic_length|eplen|mean_ep_length
            |average_ep_len|avg_?episode_len\w*)$"""),
    ("explained-variance", r"(^|[/_])explained_?var(iance)?$|vf_explained_var$|var_?explained$"),
    ("clip-fraction", r"""
          clip_?frac(tion)?s?(_\w+)?$
        | ^(policy|actor)?/?(pg_)?clip_?ratio([/_]\w+)*$
        | ^clip_ratio/\w+$"""),
    ("ratio", r"""
          ^((policy|val|ppo|actor|train)/)?(importance_|prob(ability)?_|is_)?ratio(_mean)?$
        | ^sampling/importance_sampling_ratio.*"""),
    ("advantage", r"(^|/)adv(antage)?s?$"),
    ("action-std", r"^(train/|policy/|rollout/)?(action_?std|policy_?std|log_?std|std)$|action_noise_std$"),
    ("entropy", r"(^|/)(actor|policy)/entropy_loss$"),
    ("neg-entropy", r"(^|[/_])ent(ropy)?_?loss$"),
    ("entropy", r"(^|[/])(policy_|actor_|token_|action_|mean_|avg_)*entropy(_?(avg|mean|bonus))?$"),
    ("kl", r"""
          (^|[/_])(approx_?|mean_?|policy_?|old_approx_?|ppo_?|ref_?|reverse_?|forward_?|reward_|vae_)?kl(d
            |_?div(ergence)?)?(_?(avg|mean|penalty|loss|term|old|new))?$
        | ^kl_with_ref$"""),
    ("policy-loss", r"""
          (^|[/_])(policy|pg|actor|policy_gradient|pi|surrogate)_?loss$
        | ^loss/(policy|actor|pi)(_\w+)?$
        | ^losspi$
        | ^loss_?(pi|actor|policy)$"""),
    ("value-loss", r"""
          (^|[/_])(value|vf|critic|q|qf\d?|qf_?\d?|q_?\d|td|bellman|value_function|v|baseline)_?loss$
        | ^loss/(value|critic|q)(_\w+)?$
        | ^loss_?(v|q)$
        | ^loss_?(critic|value|vf|td)$
        | ^td_error$"""),
    ("reward-term", r"""
          ^(critic/)?rewards?/(?!(mean|train|overall|total|sum|std|max|min)$)[^/]+(/mean)?$
        | ^reward_components?/.+"""),
    ("reward", r"""
          (^|[/ ])(ep(isode|isodic)?_?(rew(ard)?s?|ret(urn)?s?)(_?mean)?|episode_return_mean|eprewmean|epret
            |average_?(ep_?)?ret(urn)?s?|mean_100_episode_reward|episodic_return|(mean_?|avg_?|total_?
            |cumulative_|extrinsic_|env_|episode_)*(rewards?|returns?)|rlhf_reward|undiscounted_return)$
        | ^(critic|objective|env|reward|policy)/(scores?|rewards?|returns?|score)(_?mean)?$
        | ^reward_mean$
        | ^(critic/)?rewards?/(train|overall|total|sum|mean)$"""),
    ("reward-term", r"^reward_(?!m)\w+$|^\w+_reward(_func)?$"),
    # adversarial training
    ("gradient-penalty", r"(^|[/_])(gradient_penalty|grad_pen(alty)?|gp|r1(_penalty)?|r1_gamma)(_loss)?$"),
    ("discriminator-loss", r"""
          (^|[/_])(d|disc|discriminator|netd|d_total|dis)_?(loss|err)$
        | ^(loss|err)_?(d|disc|discriminator)(_[ab])?$
        | ^d_(adv|total|gan)(_loss)?$
        | ^loss/(d|disc|discriminator)$
        | ^loss_discriminator$
        | ^discloss$"""),
    ("generator-loss", r"""
          (^|[/_])(g|gen|generator|netg|g_total)_?(loss|err)$
        | ^(loss|err)_?(g|gen|generator)(_[ab])?$
        | ^g_(adv|total|gan)(_loss)?$
        | ^loss/(g|gen|generator)$
        | ^loss_generator$"""),
    ("discriminator-real", r"""
          ^(d|disc|discriminator)?[_/]?\(?(loss_)?(logits?_)?(d_?)?(real|x)\)?(_(loss|acc|score|logits?
            |out))?$
        | ^d\(x\)$
        | ^logits[_/]real$
        | ^loss_?d_?real$
        | ^real_score$"""),
    ("discriminator-fake", r"""
          ^(d|disc|discriminator)?[_/]?(loss_)?(logits?_)?(d_?)?fake(_(loss|acc|score|logits?|out))?$
        | ^d\(g\(z\)\).*$
        | ^d_?g_?z\d?$
        | ^logits[_/]fake$
        | ^loss_?d_?fake$
        | ^fake_score$"""),
    # codebooks, experts, units
    ("dead-codes", r"dead_?codes?|unused_codes?|num_dead\w*"),
    ("codebook-usage", r"""
          (codebook|cb|code|vocab|vq)s?_?(util\w*|usage|use|active|used|coverage)
        | (active|used|unique)_(codes?|tokens|entries)
        | num_active_codes
        | cluster_usage
        | unique_code\w*"""),
    ("codebook-perplexity", r"(codebook|cb|code|vq|quant\w*|cluster)[_/]?(perplexity|ppl)|perplexity_code\w*"),
    ("expert-load", r"expert_?\d*_?(load|usage|util\w*|count|balance|frac\w*)|max_vio|load_balance_(std|max)"),
    ("dead-units", r"dead_?(units?|neurons?|relus?|frac\w*|ratio)|activation_sparsity|frac_zero\w*|num_zeros"),
    # the machine
    ("throughput", r"""
          (tokens?|samples?|images?|imgs?|frames?|iters?|iterations?|steps?|it|examples?|sequences?|batches
            |updates)(/|_per_|_p)(s|sec|seconds?)(_?(per|/)_?(gpu|device|rank)\w*)?
        | ^(\w+/)?(fps|tps|wps|ups|sps|mfu|tflops?|flops|tgs|throughput)([_/].*)?$
        | tokens_per_second\w*
        | (^|[/_])(tflops?|mfu|throughput|samples_per_sec\w*|steps_per_sec\w*|it_per_s|bsz_per_sec|speed)"""),
    ("data-time", r"""
          (^|[/_])(data|dataload\w*|loader|dataloading)(_?time|_?wait|/time)$
        | ^data_t$
        | ^iter_time$"""),
    ("step-time", r"""
          (^|[/_])(step|iter(ation)?|batch|forward|backward|optim(izer)?\w*|update)_?(step_)?time(_(avg
            |per_\w+|ms|s|iter))?(_\(?m?s\)?)?$
        | ^elapsed_time_per_iteration.*
        | time_per_(step|iter\w*|batch)
        | timing_s/.+
        | ^(step|iter)_ms$
        | ^dt$
        | step_avg$
        | ^epoch_time$
        | timing/.+"""),
    ("time", r"""
          (^|[/_])(time|elapsed(_time)?|time_elapsed|wall(_?time|clock)?|(wall_)?clock|runtime|duration
            |eta(_seconds)?|timestamp|_runtime|_timestamp|train_runtime|train_wall|train_time|remaining_time|t
            |seconds?)$
        | _seconds$"""),
    ("memory", r"""
          (^|[/_])(max_?)?(gpu_?|cuda_?|vram_?|peak_?|allocated_?|reserved_?|cpu_?)*mem(ory)?(_?(gb|mb|gib
            |allocated|reserved|used|usage|peak|alloc\w*|mib))*(_\(?\w+\)?)?$
        | memory/.+
        | ^perf/max_memory\w*"""),
    ("gpu-util", r"gpu_?util\w*|(^|/)gpu(/|\.)\d+(/|\.)gpu$"),
    # counters
    ("epoch", r"^(\w+/)?(epochs?|ep)$|^epoch_?(num|idx|number|id)$"),
    ("progress", r"""
          ^(\w+/)?(global_?|total_?|current_?|n_?|num_?|consumed_?|trainer/)*(steps?|iter(ation)?s?|updates?
            |num_updates|samples?|timesteps?|tokens?|episodes?|percentage|frames|batches|input_tokens_seen
            |train_samples\w*|tokens_seen|examples|seen|total_timesteps|n_updates|env_steps|iteration|it|i)$"""),
    ("batch-size", r"^(\w+/)?(global_|micro_|mini_|effective_|train_)?(batch_?size|bsz)$"),
    (None, r"^(total_flos|flos)$"),
    # how good it is, what is minimised
    ("perplexity", r"(^|[/_])(perplexity|ppl)$|^lm_loss_ppl$"),
    ("eval-metric", rf"^metrics/.*|(^|[/_])(bbox|segm|keypoints?|coco|voc|pascal\w*)?[_/]?{DETECTION}$"),
    ("metric", rf"(^|/)([a-z]+_)?({LOWER})$|(^|/)({HIGHER})$"),
    ("loss", rf"""
          ^(lm_|total_|sum_|mean_|meta_|model_|clm_|causal_lm_|sft_|lm/|cross_entropy_|ce_|nll_|denois\w+_
            |diffusion_|final_)?{LOSS}(_(total|sum|all|mean|avg|overall|per_token|per_sample|smooth\w*|lm))?$
        | ^(total|loss)/(loss|total|all|overall|cross_entropy)$
        | ^cross_?entropy(_loss)?$
        | ^negative_log_likelihood$
        | ^neg_?elbo$
        | ^(optimi[sz]ation|training)_loss$
        | ^lm_loss/lm_loss$
        | ^lm_loss_training/lm_loss$
        | ^(losses?|metrics|charts|stats|main)/(total_)?loss$
        | ^loss_fn$
        | ^l$
        | ^loss\.item\(\)$"""),
    ("loss-term", rf"""
          (^|[/_])({TERM})[_/]?\d*[_/]?loss(es)?([_/]\w+)?$
        | (^|[/_])loss(es)?[_/.-]({TERM})([_/]?\w+)?$
        | ^loss_q\d$
        | ^(vb|vlb|kld|nll_\w+|ctc)$
        | ^(losses|loss)/(?!total).+$
        | ^(\w+/)?(commit\w*|codebook|recon\w*|vq)$
        | .*(^|[/_ ])loss(es)?\d*$
        | ^loss[_/ -].+$
        | \w+loss$"""),
)
# fmt: on
