"""All periods of a programme together: index, dataset, means, pages; made from public bytes."""
