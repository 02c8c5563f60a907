"""Parts of policies: queues, ranks, scores and admission."""
