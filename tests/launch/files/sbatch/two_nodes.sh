#!/bin/bash -l
#SBATCH -o SLURM_Logs/%x_%j_master.out
#SBATCH --job-name="Llama 405B"
#SBATCH --nodes=2 --ntasks-per-node=1
#SBATCH --gres=gpu:8   # all of them
#SBATCH -t 12:00:00
##SBATCH --partition=debug

export NCCL_DEBUG=INFO
model=/models/Llama-3.1-405B
HEAD_NODE=$(scontrol show hostname "$SLURM_NODELIST" | head -n 1)
NCCL_INIT_ADDR="${HEAD_NODE}:8000"

srun --ntasks=1 --nodes=1 --exclusive --output="SLURM_Logs/%x_%j_node0.out" \
    python3 -m sglang.launch_server \
    --model-path "$model" \
    --tp-size 16 \
    --nccl-init-addr "$NCCL_INIT_ADDR" \
    --nnodes 2 --node-rank 0 &

srun --ntasks=1 --nodes=1 --exclusive --output="SLURM_Logs/%x_%j_node1.out" \
    python3 -m sglang.launch_server \
    --model-path "$model" \
    --tp-size 16 \
    --nccl-init-addr "$NCCL_INIT_ADDR" \
    --nnodes 2 --node-rank 1 &
wait
