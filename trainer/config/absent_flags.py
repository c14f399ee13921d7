"""Flags of other programs that nothing here stands in for, with the reason; `synonyms` reads this table.

The programs are those of `other_programs`, kohya's scripts and Megatron-LM.
"""

from __future__ import annotations

# What is not here; no flag stands in for it.
ABSENT: tuple[tuple[str, str], ...] = (
    (
        "nothing is uploaded: the run's folder has Hugging Face layout and can be pushed by its own tools",
        "push_to_hub push_model hub_* hub_path push_dataset_to_hub export_hub_model_id hf_repo_id use_hf use_ms "
        "model_author upload* model_registry",
    ),
    (
        "a language model learns by pretraining, SFT, DPO and KTO; rewards, PPO, GRPO, ORPO, SimPO and distillation "
        "of one are not here",
        "ppo_* orpo_* simpo_* cpo_* grpo_* reward_* process_reward_model center_rewards_coefficient ref_model* "
        "use_orpo use_ipo "
        "sync_ref_model vllm vllm_* sglang_* rl_coef advantage_estimator n_samples_per_prompt ebft trl kl_coef "
        "ipo_* rpo_alpha use_vllm lmdeploy_* nll_loss_coef vf_coef "
        "cliprange_value "
        "ref_checkpointer num_generations precompute_ref_batch_size",
    ),
    (
        "DPO is its sigmoid loss with the run's first weights as reference, and nothing is added to it",
        "dpo_loss preference_loss reference_free "
        "dpo_label_smoothing pref_ftx pref_bco_weight dpo_ftx loss_weights dpo_loss_weights use_weighting "
        "f_divergence_* f_alpha_* discopop_tau ld_alpha dpo_use_weighting dpo_padding_free dpo_norm_loss",
    ),
    (
        "the loss is the plain one of its task, without noise, smoothing or other weights",
        "neftune_noise_alpha neftune* label_smoothing label_smoothing_factor use_dft_loss use_asft_loss asft_alpha "
        "disable_dropout loss loss_fn use_eaft* eaft_* ignore_pad_token_for_loss focal_loss router_aux_loss_coef "
        "moe_aux_loss_coef aux_loss_coef enable_dft_loss scaling_softmax*",
    ),
    (
        "a profiler is not built in: telemetry.jsonl has rates, waiting, memory and utilisation, `bench` times parts",
        "profiler profiler_* profile_* enable_torch_profiler active_steps wait_steps record_shapes with_stack "
        "with_flops profile log_gpu_memory",
    ),
    (
        "images, sound and video are not trained on",
        "image_* video_* audio_* vision_* crop_to_patches use_audio_in_video freeze_mm_modules input_transform "
        "validation_prompt timestep_sampling prior_* with_prior_preservation instance_* class_data_dir "
        "class_prompt num_class_images train_text_encoder pretrained_vae* network_train_* guidance_scale half_vae "
        "lowram "
        "clip_l clip_skip resolution random_flip color_aug flip_aug sample_every_* sample_prompts "
        "caption_* bucket_* min_bucket_* max_bucket_* enable_bucket cache_latents* cache_text_encoder*",
    ),
    (
        "gradients are clipped by their norm over all weights; no other clipping is here",
        "gradient_clip_algorithm clip_value clip_grad_value clipnorm clipvalue",
    ),
    (
        "TPUs, Gaudi, Neuron and SageMaker are not here",
        "gaudi_* use_habana use_lazy_mode tpu* no_tpu_* vm use_tpu downcast_* jax* sagemaker*",
    ),
    (
        "memory is not emptied between steps: what a step needs stays reserved, which is faster",
        "torch_empty_cache_steps gc_steps gc_collect_steps",
    ),
    (
        "a trained model is used by `generate`, `chat` and `predict`, which have such options of their own",
        "temperature top_p top_k top_k_sampling do_sample num_beams eval_num_beams max_new_tokens generate_samples "
        "num_generation_samples generation_* generate_max_len infer_backend use_kv_cache",
    ),
    (
        "a language model learns to predict the next token of its rows: masked words, infilling and the tasks of a "
        "benchmark are not here",
        "mlm mlm_* fim_* task_name glue_task*",
    ),
    (
        "there is no debug mode: an error has a code with its reason, and a traceback where it is a defect",
        "debug debug_*",
    ),
    (
        "the positions and layers of a model are those of its config.json",
        "rope_scaling rope_theta use_cache mixture_of_depths use_pose pose_* bias use_rmsnorm "
        "disable_bias_linear layernorm_epsilon norm_epsilon normalization position_embedding_type rotary_* swiglu",
    ),
)

_PAIRS = "not built; dpo learns from such pairs, by its sigmoid loss against the run's first weights, not by this one"
_VERDICTS = "not built; kto learns from answers that are marked good or bad, by its own loss"
_REWARDS = "not built; answers that a reward chose can be rows for sft, or pairs of chosen and rejected for dpo"
# Values of --method in other programs that no method here is.
METHODS_ABSENT = {
    **dict.fromkeys(("ipo", "hinge", "orpo", "simpo", "cpo", "robust", "sppo"), _PAIRS),
    **dict.fromkeys(("bco",), _VERDICTS),
    **dict.fromkeys(("grpo", "ppo", "rloo", "rm", "reward", "gkd", "online_dpo"), _REWARDS),
}
