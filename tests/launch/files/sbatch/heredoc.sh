#!/bin/bash
#SBATCH --nodes=1
cat > hosts.txt <<-'END'
	don't touch "this
	python -m sglang.launch_server --model-path wrong --tp 1
	END
module load cuda/12.8
A=1 B=2
export A B
srun python -m sglang.launch_server --model-path right --tp 8 --enable-metrics
