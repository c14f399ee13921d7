"""Flags of other programs, by what becomes of them here; `synonyms` reads these tables.

The names are those of Hugging Face's Trainer 5.23, accelerate launch 1.15, lightning 2.6, LLaMA-Factory 0.9.5, axolotl
0.19, TRL 1.16, torchtune 0.6.1, unsloth, nanoGPT, torchrun of torch 2.13, Keras and scikit-learn. A name has no dashes
before it and underscores within; one that ends in `*` stands for all that begin so.
"""

from __future__ import annotations

from collections.abc import Mapping

# The setting that a flag is; the setting with the value that a switch stands for; or with `{}` where a value goes.
TAKEN: tuple[tuple[str, str], ...] = (
    ("learning_rate", "lr learning_rate_init peak_lr"),
    ("epochs", "num_train_epochs num_epochs n_epochs max_epochs nb_epoch nb_epochs train_epochs max_train_epochs"),
    (
        "max_steps",
        "max_iters num_steps train_steps total_steps max_train_steps num_train_steps iterations "
        "num_iterations steps train_iters",
    ),
    (
        "clip_norm",
        "max_grad_norm grad_clip gradient_clip_val clip_grad_norm gradient_clipping clip_grad grad_norm_clip max_norm",
    ),
    ("weight_decay", "wd"),
    ("optimizer", "optim"),
    ("optimizer=muon", "use_muon"),
    ("schedule", "lr_scheduler_type lr_scheduler lr_schedule lr_decay_style scheduler"),
    ("warmup_steps", "warmup_iters num_warmup_steps lr_warmup_steps lr_warmup_iters"),
    ("warmup_ratio", "lr_warmup_ratio lr_warmup_fraction"),
    ("batch_size", "total_batch_size global_batch_size effective_batch_size bs batch"),
    ("model", "model_name_or_path base_model model_path pretrained_model_name_or_path model_id"),
    ("output", "output_dir out_dir default_root_dir output_path output_folder"),
    ("run", "run_name experiment_name exp_name job_name output_name"),
    (
        "data",
        "data_path train_file train_data training_data train_path data_file input_file csv csv_file dataset_path "
        "train_data_file json_path",
    ),
    ("hidden_layers", "hidden_sizes hidden_layer_sizes hidden_dims hidden_units hidden"),
    ("lora_rank", "lora_r r"),
    ("activation_checkpointing", "recompute_granularity"),
    ("lora_targets", "lora_target_modules lora_target target_modules lora_attn_modules"),
    ("lora_stabilized", "use_rslora peft_use_rslora rslora"),
    ("dpo_beta", "beta pref_beta rl_beta kto_beta"),
    ("kto_good_weight", "desirable_weight kto_chosen_weight kto_desirable_weight"),
    ("kto_bad_weight", "undesirable_weight kto_rejected_weight kto_undesirable_weight"),
    ("reference", "precompute_ref_log_probs"),
    ("method", "stage rlhf_type"),
    ("adapter", "finetuning_type tuner_type train_type"),
    ("decoder_layers", "n_layer n_layers num_hidden_layers"),
    ("decoder_width", "n_embd d_model"),
    ("packing", "sample_packing packed packing_samples"),
    ("train_on_prompts", "train_on_inputs train_on_prompt"),
    (
        "validation_share",
        "val_size val_set_size validation_split validation_fraction eval_split val_split val_split_fraction",
    ),
    ("max_rows", "max_samples max_train_samples num_samples"),
    ("patience", "early_stopping_patience n_iter_no_change early_stop_patience"),
    ("eval_every", "eval_steps eval_interval val_check_interval eval_freq eval_frequency"),
    (
        "checkpoint_every",
        "save_steps save_interval save_every checkpoint_interval checkpointing_steps save_freq save_every_n_steps",
    ),
    ("keep=last={}", "save_total_limit checkpoints_total_limit"),
    ("loader_workers", "dataloader_num_workers num_workers n_workers max_data_loader_n_workers"),
    ("threads", "num_threads num_cpu_threads_per_process n_threads n_jobs"),
    ("precision", "mixed_precision amp_dtype"),
    ("seed", "random_seed random_state manual_seed"),
    ("ranks", "num_gpus n_gpus nproc_per_node num_processes gpus ngpus devices num_devices nproc"),
    ("precision=bf16", "bf16 use_bf16"),
    ("precision=fp16", "fp16 use_fp16 half"),
    ("precision=fp32", "fp32 use_fp32"),
    ("use_mixed_precision", "amp use_amp"),
    ("adapter=lora", "use_lora use_peft lora"),
    ("adapter=qlora", "load_in_4bit use_qlora qlora use_4bit"),
    ("compile=on", "torch_compile use_compile use_torch_compile compile_model"),
    ("device=cpu", "use_cpu no_cuda cpu"),
    ("track=tensorboard", "use_tensorboard tensorboard tensorboard_log"),
    ("track=wandb", "use_wandb wandb_log wandb"),
    ("track=mlflow", "use_mlflow mlflow"),
    (
        "activation_checkpointing=full",
        "gradient_checkpointing use_gradient_checkpointing enable_activation_checkpointing grad_checkpointing "
        "fsdp_activation_checkpointing checkpoint_activations",
    ),
    ("activation_checkpointing=selective", "recompute_activations"),
)
# What to give instead, and why a flag is not taken as it is.
INSTEAD: tuple[tuple[str, str], ...] = (
    (
        "--epochs takes passes over the rows, as scikit-learn's max_iter does with sgd and adam; --max-steps takes "
        "optimizer steps",
        "max_iter",
    ),
    (
        "--eval-every takes the steps between validations, as diffusers' validation_steps does; Keras' counts the "
        "batches of one, and a validation here takes all rows that --validation-share holds out",
        "validation_steps val_steps",
    ),
    (
        "--batch-size is the rows of a step, --micro-batch how many of them at a time: N steps of accumulation are "
        "--batch-size N times --micro-batch",
        "gradient_accumulation_steps accumulate_grad_batches grad_accum grad_accum_steps accumulation_steps "
        "gradient_accumulation micro_batch_size auto_find_batch_size train_micro_batch_size_per_gpu "
        "micro_batches seqs_per_batch",
    ),
    (
        "--batch-size is the rows of a step of all ranks together",
        "per_device_train_batch_size per_gpu_train_batch_size train_batch_size batch_size_per_gpu local_batch_size",
    ),
    (
        "a validation takes as many rows at a time as fit, up to --micro-batch",
        "per_device_eval_batch_size eval_batch_size val_batch_size eval_accumulation_steps batch_eval_metrics",
    ),
    (
        "--activation-checkpointing takes how much is computed again: off, selective or full",
        "gradient_checkpointing_* activation_checkpointing_kwargs selective_checkpointing disable_gradient_* "
        "recompute_layer_types use_reentrant_gc activation_offloading enable_activation_offloading layer_offloading "
        "deepspeed_activation_checkpointing",
    ),
    (
        "--parallel fsdp2 shards weights, gradients and optimizer state over the ranks of --ranks",
        "deepspeed deepspeed_* use_deepspeed zero_* zero3_* offload_* fsdp fsdp_* use_fsdp deepcompile "
        "custom_sharded_layers cpu_offload",
    ),
    (
        "--parallel takes ddp, fsdp2, pipeline or sequence",
        "strategy distributed_strategy parallelism_config* tensor_parallel* pipeline_parallel* "
        "context_parallel* sequence_parallel* dp_* tp_* pp_* cp_size use_parallelism_config use_megatron_lm "
        "megatron_* data_parallel* ring_attn* heads_k_stride ddp ddp_* find_unused_parameters sync_batchnorm "
        "tensor_model_parallel* pipeline_model_parallel* pipe_parallel* model_parallel* ds_sequence_parallel* "
        "use_distributed_sampler multi_gpu num_layers_per_virtual_* overlap_* use_distributed_optimizer num_stages",
    ),
    (
        "--comms takes the transport between ranks; auto is the first that passes a probe",
        "backend dist_backend ddp_backend distributed_backend",
    ),
    (
        "--ranks N starts ranks on this machine; on several, `./invokew submit` writes the scheduler's job, or "
        "torchrun starts `python -m trainer train` itself",
        "nnodes num_nodes num_machines node_rank machine_rank master_addr master_port main_process_* rdzv_* "
        "standalone local_rank local_addr world_size same_network local_world_size start_method run_path role tee "
        "redirects local_ranks_filter duplicate_std* logs_specs event_log_handler virtual_local_rank numa_binding "
        "signals_to_handle shutdown_timeout mpirun_* ray_* no_python module enable_cpu_affinity "
        "bind_cores_to_rank include exclude hostfile",
    ),
    ("--max-restarts and --hang-timeout watch the ranks", "monitor_interval ddp_timeout timeout"),
    (
        "--device takes auto, cpu, cuda or cuda:N; cuda is an AMD card under ROCm, too",
        "accelerator gpu cuda gpu_id gpu_ids cuda_device cuda_id use_gpu "
        "use_cuda device_map device_ids main_gpu max_memory "
        "experimental_skip_move_to_device use_ipex use_mps_device",
    ),
    (
        "--resume auto resumes the newest unfinished run, --resume NAME the run of that name",
        "resume_from_checkpoint resume_from auto_resume_from_checkpoints ckpt_path checkpoint load_checkpoint "
        "restore_from restore_callback_states_* ignore_data_skip load load_optim load_rng save_optim save_rng",
    ),
    (
        "--model names a folder to begin with, --resume an unfinished run",
        "init_from train_from_scratch init_checkpoint init_ckpt",
    ),
    (
        "--output is the parent of all runs; checkpoints and logs are in the run's own folder, named by --run",
        "logging_dir log_dir save_dir checkpoint_dir ckpt_dir model_dir work_dir exp_dir results_dir save_path "
        "overwrite_output_dir log_path save tensorboard_dir",
    ),
    (
        "--checkpoint-every takes steps, a time such as 10m, or 0 for none; --keep takes which stay",
        "save_strategy enable_checkpointing save_on_each_node always_save_checkpoint saves_per_epoch save_first_step "
        "save_only_model save_top_k enable_jit_checkpoint save_last save_sliding_window recipe_checkpoint "
        "save_every_n_epochs save_last_n_epochs",
    ),
    (
        "the model is written once, at the end, as safetensors; --export adds a format, `merge` and `gguf` others",
        "save_safetensors save_model save_method push_gguf save_hf quantization_method save_adapter_weights_only "
        "save_model_as "
        "export_dir "
        "export_size export_device export_legacy_format export_quantization_* merge_lora merge_method quantization",
    ),
    (
        "--eval-every takes steps between validations; without it there is one at the end of each epoch",
        "eval_strategy evaluation_strategy evals_per_epoch check_val_every_n_epoch validation_freq eval_epochs do_eval "
        "eval_delay eval_on_start num_sanity_val_steps initial_validation final_validation evaluate_example "
        "eval_metric extra_eval_args eval_iters run_validation_every_n_steps validation_every",
    ),
    (
        "a run has no switch for its parts: `train` trains and validates (--eval-every), `predict` and `evaluate` "
        "take a finished one",
        "do_train do_predict eval_only mode do_causal_lm_eval do_bench_eval predict_with_generate inference_mode",
    ),
    (
        "--weights best is the default: the weights of the lowest validation loss; last keeps the last",
        "load_best_model_at_end metric_for_best_model greater_is_better save_best monitor restore_best_weights",
    ),
    (
        "--patience N ends a run after N validations without a lower loss",
        "early_stopping early_stopping_steps early_stopping_rounds early_stopping_threshold loss_watchdog_*",
    ),
    (
        "--warmup-steps takes steps, --warmup-ratio a share of them",
        "warmup warmup_epochs lr_quadratic_warmup lr_warmup_samples",
    ),
    (
        "--schedule decays to 0; --decay-ratio is the share of steps in which wsd decays",
        "min_lr decay_lr lr_decay_iters lr_decay_steps lr_scheduler_kwargs cosine_min_lr_ratio "
        "lr_scheduler_num_cycles lr_scheduler_power "
        "cosine_constant_lr_ratio "
        "lr_div_factor num_cycles gamma step_size lr_decay eta_min min_learning_rate warmup_min_lr min_lr_ratio "
        "jagged_restart_*",
    ),
    (
        "--optimizer is adamw, adamw8bit, adamw-host or muon, betas are 0.9 and 0.999 and eps 1e-8; --weight-decay and "
        "--learning-rate set it",
        "optim_* optimizers adam_* beta1 beta2 beta3 betas eps epsilon momentum solver nesterov "
        "use_adam_mini no_nesterov ns_steps use_galore galore_* use_apollo apollo_* use_badam badam_* "
        "muon_* dion_* qgalore_* optimizer_* fused torchdistx_path enable_galore update_proj_gap",
    ),
    (
        "one --learning-rate is for all weights",
        "lr_groups embedding_lr embedding_lr_scale embedding_learning_rate aligner_lr vit_lr loraplus_* "
        "text_encoder_lr unet_lr",
    ),
    (
        "--track names trackers; wandb and mlflow take the rest from their own variables, such as WANDB_PROJECT",
        "report_to logger loggers wandb_* project trackio_* swanlab_* use_swanlab mlflow_* comet_* log_with "
        "metric_logger use_comet use_trackio tensorboard_* enable_autolog_hparams log_project log_run_name",
    ),
    (
        "a run writes its rates to telemetry.jsonl every five seconds and a line at each validation (--eval-every)",
        "logging_* log_interval log_every_n_steps log_steps print_freq log_level log_level_replica log_on_each_node "
        "disable_tqdm enable_progress_bar enable_model_summary verbose quiet silent show_progress include_num_* "
        "include_tokens_per_second include_tkps include_effective_* plot_loss skip_memory_metrics "
        "log_peak_memory_stats print_param_status",
    ),
    (
        "--sequence takes the tokens of a row; --too-long what becomes of longer ones",
        "max_seq_length max_seq_len max_length cutoff_len sequence_len seq_len seq_length sequence_length block_size "
        "context_length model_max_length max_source_length max_target_length max_prompt_length max_completion_length "
        "max_position_embeddings model_seqlen "
        "max_prompt_len truncation* excess_length_strategy eval_sequence_len pad_to_* n_ctx ctx_len min_sample_len "
        "max_len",
    ),
    (
        "--data takes a file of this machine, for a language model JSON lines or text; --validation-share holds rows "
        "out",
        "dataset datasets dataset_name dataset_dir data_dir data_files dataset_config_name validation_file "
        "eval_dataset test_datasets test_file pretraining_dataset dataset_* train_dataset val_data val_file eval_file "
        "media_dir tokenized_path mix_strategy interleave_probs shuffle_merged_datasets shuffle_before_* is_preprocess "
        "skip_prepare_dataset preprocess_iterable split ds_type text_column dataset_text_field field_* data_shared_* "
        "data_impl train_data_dir eval_data_file train_weighted_split_* root_dir repo_id",
    ),
    (
        "--data takes rows with the fields messages, prompt and answer, chosen and rejected, or text; --method auto "
        "takes what the first row has",
        "columns_* prompt_field response_field prompt_column response_column input_format output_format conversation "
        "message_* roles roles_to_train chosen_format rejected_format prompt_format type format system_format "
        "input_key output_key prompt_key chosen_key rejected_key input_template",
    ),
    (
        "the chat template is the model folder's own; --stop-token and --train-on-prompts decide what carries loss",
        "template prompt_type prompt_template* chat_template* tool_format default_system* "
        "system_prompt mask_history enable_thinking "
        "preserve_thinking train_on_eos train_on_eot eot_tokens assistant_only_loss completion_only_loss "
        "split_thinking template_thinking_key apply_chat_template add_non_thinking_prefix stop_words "
        "train_on_last_step_only drop_system_message",
    ),
    (
        "--model names a folder in Hugging Face layout on this machine, with its tokenizer; nothing is downloaded",
        "model_name tokenizer tokenizer_* use_fast_tokenizer trust_remote_code model_revision revision cache_dir "
        "use_auth_token hf_use_auth_token token hf_hub_token ms_hub_token om_hub_token base_model_config "
        "model_type cls_model_config processor_* revision_of_model low_cpu_mem_usage adapter_name_or_path "
        "model_class model_config vocab_file merge_file "
        "adapter_folder lora_model_dir model_init_kwargs config_name resize_vocab add_tokens special_tokens "
        "bos_token eos_token pad_token unk_token additional_special_tokens tokens new_special_tokens* "
        "add_special_tokens split_special_tokens init_special_tokens",
    ),
    (
        "--precision takes fp32, bf16, fp16 or auto; weights stay fp32 and products are taken in it",
        "dtype torch_dtype compute_dtype model_dtype pure_bf16 bfloat16 float16 float32 bf16_full_eval fp16_full_eval "
        "save_precision loss_scale loss_scale_* "
        "downcast_bf16 upcast_layernorm upcast_lmhead_output infer_dtype fp16_opt_level opt_level autocast "
        "param_dtype grad_accum_dtype",
    ),
    ("--precision takes no fp8; bf16 is the smallest", "fp8 fp8_*"),
    (
        "--adapter qlora holds the frozen weights in 4 bits (nf4); 8 bits are not trained over",
        "load_in_8bit use_8bit quantization_bit quantization_type double_quantization bnb_* use_bnb_nested_quant gptq "
        "quantization_device_map quantizer groupsize quantize quant_type model_quantization_*",
    ),
    (
        "--adapter lora has --lora-rank, --lora-alpha, --lora-dropout, --lora-targets and --lora-stabilized",
        "use_dora peft_use_dora adalora_* vera_rank fourier_scaling to_peft_format pissa_* loftq_* lora_bias "
        "lora_modules_to_save modules_to_save lora_fan_in_fan_out "
        "lora_all_modules network_dim network_alpha network_module network_args "
        "lora_target_linear lora_target_parameters lora_rank_pattern lora_alpha_pattern peft peft_* relora relora_* "
        "lora_task_type additional_target create_new_adapter module_dropout oft_* freeze_* unfrozen_parameters "
        "apply_lora_to_mlp apply_lora_to_output lora_on_cpu use_llama_pro qlora_sharded_model_loading",
    ),
    (
        "--attention chooses the kernel of --network transformer; a language model takes the fastest that matches fp64 "
        "under --fast",
        "attn_implementation flash_attn flash_attention flash_attention_* use_flash_attention* xformers_attention "
        "sdp_attention flex_attention flex_attn_* sage_attention eager_attention use_sdpa shift_attn flash_optimum "
        "sdpa xformers enable_xformers* mem_eff_attn use_flash_attn "
        "flash_attn_* s2_attention attn_impl",
    ),
    (
        "--fast auto takes faster kernels where they match fp64",
        "use_liger_kernel enable_liger_kernel liger_* use_unsloth use_unsloth_gc lora_mlp_kernel lora_qkv_kernel "
        "lora_o_kernel lora_embedding_kernel use_kernels chunked_cross_entropy* use_v1_kernels tiled_mlp* "
        "fused_attn_kernel liger_kernel_config dpo_use_liger_kernel cut_cross_entropy",
    ),
    ("--compile takes off, auto or on", "torch_compile_* dynamo_* compile_mode jit"),
    (
        "results are deterministic as they are; --fast nondeterministic lets kernels of language models vary",
        "deterministic full_determinism full_determinism_* benchmark cudnn_benchmark cudnn_deterministic tf32 "
        "allow_tf32",
    ),
    ("--nan-guard checks for NaN every N steps and names the layer", "detect_anomaly logging_nan_inf_filter"),
    (
        "--feed takes where rows are held, --chunk-size how many are read at a time",
        "streaming buffer_size dataloader_* pin_memory persistent_workers prefetch_factor cache_dataset "
        "persistent_data_loader_workers valid_num_workers "
        "streaming_* pretrain_multipack_* multipack_* preprocessing_batch_size in_memory",
    ),
    (
        "--cache names a folder that keeps computed features; without it nothing is kept between runs",
        "overwrite_cache use_cached_dataset",
    ),
    ("--workers takes processes that compute features", "preprocessing_num_workers num_proc preprocess_shards"),
    (
        "--seed decides the order of rows, which is another in every epoch",
        "shuffle data_seed disable_shuffling group_by_length curriculum_sampling train_sampling_strategy  doc_shuffle "
        "length_column_name sampler average_tokens_across_devices dataset_shuffle",
    ),
    (
        "--packing true or false is all: rows share a sequence without attending to each other",
        "packing_strategy neat_packing eval_packing eval_sample_packing sample_packing_* batch_flattening padding_free "
        "pretraining_sample_concatenation block_diag_attn",
    ),
    (
        "--data-fraction and --max-rows take a part of the rows, --max-steps a part of the steps",
        "limit_train_batches limit_val_batches limit_test_batches limit_predict_batches overfit_batches fast_dev_run "
        "max_steps_per_epoch min_epochs min_steps max_time steps_per_epoch train_fraction max_tokens max_num subset "
        "exit_interval exit_duration_in_mins "
        "dry_run max_eval_*",
    ),
    (
        "--callback takes FILE.py:Class of your own",
        "callbacks plugins trainer_cls custom_loss compute_metrics include_for_metrics compute_accuracy hooks",
    ),
    (
        "--ignore names columns that are no input, --target the one to forecast",
        "remove_unused_columns label_names target_column target_columns label_column feature_columns features_columns "
        "label_column_name",
    ),
    (
        "--hidden-layers takes the widths between commas, as 64,32",
        "num_layers layers hidden_size hidden_dim width depth ffn_hidden_size model_layers model_hidden_dim",
    ),
    (
        "--heads is for --network transformer; a new decoder has heads of 32, by --decoder-width",
        "n_head num_heads num_attention_heads n_heads num_key_value_heads group_query_attention num_query_groups",
    ),
    (
        "--method takes pretrain, sft, dpo or kto; dpo has the sigmoid loss, and no other preference loss is built",
        "rl pref_loss loss_type use_kto dpo_loss_type finetuning_method training_type algorithm objective",
    ),
    ("--recipe takes a file of settings", "config config_file axolotl_config_path yaml conf args_file"),
    (
        "a native run has your shell's variables; --set takes settings",
        "env gpu_memory_limit aws_*",
    ),
)
# Words that other programs have for a value of ours.
WORDS: Mapping[str, Mapping[str, str]] = {
    "schedule": {
        "constant_with_warmup": "constant",
        "warmup_stable_decay": "wsd",
        "inverse_sqrt": "inverse-sqrt",
        "none": "constant",
    },
    "precision": {
        **{"no": "fp32", "32": "fp32", "32-true": "fp32", "float32": "fp32", "64": "fp64", "64-true": "fp64"},
        **{"bf16-mixed": "bf16", "bfloat16": "bf16", "16": "fp16", "16-mixed": "fp16", "float16": "fp16"},
    },
    "optimizer": {
        **dict.fromkeys(("adamw_torch", "adamw_torch_fused", "adamw_hf"), "adamw"),
        **dict.fromkeys(("adamw_8bit", "adamw_bnb_8bit", "paged_adamw_8bit"), "adamw8bit"),
    },
    "method": {"pt": "pretrain", "dpo": "dpo", "sft": "sft", "kto": "kto"},
    "adapter": {"full": "none"},
    "reference": {"true": "cached", "false": "again"},
    "compile": {"true": "on", "false": "off"},
    "activation_checkpointing": {"true": "full", "false": "off", "none": "off"},
}
