"""What policies are put together from: queues, ranks, scores and admission."""
